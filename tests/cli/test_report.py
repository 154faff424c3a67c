"""`cv --report`: what stands on the page, and how a real browser shows it."""

import base64
import html
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.cli.asking import ADULT, ask, check_refused, succeed
from tests.cli.browser import browser, browser_path
from tests.forked import run_forked

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

EVIL_TARGET = "</title><script>document.title = 'owned'</script>"
EVIL = {
    "script": "<script>document.body.innerHTML = 'owned'</script>",
    "image": '"><img src=x onerror="document.title=\'owned\'">',
    "formula": "a $\\frac{x$ b $",
    "template": "{{ 7 * 7 }} {% raw %}",
    "letters": "名前 😀 \x01\x0b",
    "long": "x" * 300,
}
SIZES = {"desktop": (1200, 900, False), "phone": (390, 844, True)}
PICTURES = """[...document.images].map(image => ({
    width: image.naturalWidth, shown: image.getBoundingClientRect().width,
    complete: image.complete, alt: image.alt, address: image.currentSrc.slice(0, 26)}))"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Pages by name: a tuned tree on real data, models of many trees, a table of evil names."""
    folder = tmp_path_factory.mktemp("reports")
    pd.read_csv(ADULT, nrows=3_000).to_csv(folder / "few.csv", index=False)
    wanted = {
        "adult": [folder / "few.csv", "--target", "target", "--folds", 3, "--max-depth", 6],
        "forest": [folder / "few.csv", "--target", "age", "--task", "regression", "--folds", 2],
        "evil": [evil_table(folder), "--target", EVIL_TARGET, "--folds", 3, "--tune-simplest"],
    }
    wanted["boosting"] = [*wanted["forest"], "--model", "boosting", "--max-iter", 3, "--tune"]
    wanted["adult"].append("--tune")
    wanted["forest"] += ["--model", "forest", "--trees", 3, "--max-depth", 5]
    pages = {}
    for name, words in wanted.items():
        pages[name] = folder / f"{name}.html"
        result = succeed("cv", *words, "--report", pages[name])
        assert result.stderr == ""
        assert f"{pages[name]}: " in result.stdout
    return pages


def evil_table(folder):
    """A table with names and labels that want to be more than text."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(200, len(EVIL)))
    table = pd.DataFrame(dict(zip(EVIL.values(), numbers.T, strict=True)))
    table["words"] = rng.choice(["$x_1", "<b>bold</b>", "\x1b[31m"], size=200)
    sums = numbers.sum(axis=1) + 2 * (table["words"] == "$x_1")
    table[EVIL_TARGET] = np.where(sums > 0.5, "<i>yes</i> $\\q$", 'no & "not"')
    path = folder / "evil.csv"
    table.to_csv(path, index=False)
    return path


def words_of(page):
    """The text of a page without its pictures, spaces as one."""
    text = re.sub(r'(src|srcset)="data:[^"]*"', "", page.read_text(encoding="utf-8"))
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def test_what_the_page_of_a_tree_tells(reports):
    words = words_of(reports["adult"])
    for told in (
        *("How well a tree predicts target", "3,000 × 14", "6 ordered, 8 categorical"),
        *("3-fold cross-validation", "0.7553 always saying the largest class"),
        *("Folds", "Size", "the largest", "chosen", "Cost-complexity pruning", "Columns"),
        *("Stability", "same column", "|--- marital-status", "Classes of target", "2,266"),
        *("--target target --folds 3 --tune --report", "numpy", "DecisionTreeClassifier"),
    ):
        assert told in words, told
    assert words.count("rule size accuracy leaves") == 1


def test_what_the_page_of_a_forest_tells(reports):
    words = words_of(reports["forest"])
    for told in ("How well a forest predicts age", "R²", "3 trees, depth up to 5", "median"):
        assert told in words, told
    for told in ("Stability", "|---", "ccp_alpha 0.0 Size", "Sizes to choose from"):
        assert told not in words, told


def test_what_the_page_of_a_boosted_model_tells(reports):
    words = words_of(reports["boosting"])
    told = ("How well a boosted model predicts age", "R²", "3 iterations, 3 trees, depth up to")
    told = (*told, "rule size R² leaves", "max_iter 3", "Iterations", "Every number of them was")
    for each in (*told, "learning_rate", "GradientBoostingRegressor"):
        assert each in words, each
    assert "Stability" not in words


@pytest.mark.parametrize("name", ["adult", "forest", "boosting", "evil"])
def test_the_page_is_one_small_file_that_names_no_other(reports, name):
    text = reports[name].read_text(encoding="utf-8")
    assert len(text) < 1_000_000
    assert "<script" not in text
    addresses = re.findall(r'(?:src|srcset|href)="([^"]*)"', text)
    assert addresses
    assert all(address.startswith(("data:image/svg+xml;base64,", "#")) for address in addresses)
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_pictures_are_good_xml_with_the_text_in_it(reports):
    text = reports["evil"].read_text(encoding="utf-8")
    pictures = re.findall(r'"data:image/svg\+xml;base64,([^"]*)"', text)
    assert len(pictures) == 9  # four for light and dark, and the shared forest
    words = ""
    for picture in pictures:
        root = ElementTree.fromstring(base64.b64decode(picture))
        words += " ".join(root.itertext())
    for name in ("a $\\frac{x$ b $", "{{ 7 * 7 }} {% raw %}", "名前 😀 \ufffd\ufffd"):
        assert name in words, name
    assert 'no & "not"' in words


def test_evil_names_are_text(reports):
    words = words_of(reports["evil"])
    assert EVIL["template"] in words
    text = reports["evil"].read_text(encoding="utf-8")
    assert html.escape(EVIL["script"][:20], quote=True) in text
    assert "<b>bold</b>" not in text
    assert "<i>yes</i>" not in text


@pytest.mark.one_of(2)
@pytest.mark.parametrize("options", [[], ["--tune-nested"]], ids=str)
def test_a_page_says_that_a_chosen_size_is_scored_too_well(csv, tmp_path, options):
    out = tmp_path / "a.html"
    words = ["--target", "class", "--folds", 2, "--tune", *options, "--report", out]
    succeed("cv", csv, *words)
    expected = r"also chosen it: on new rows expect a little less\."
    if options:
        expected = r"on new rows expect \d\.\d{4} ± \d\.\d{4}, the accuracy of sizes that were"
    assert re.search(expected, words_of(out))


def test_a_nested_standard_error_is_told(csv, tmp_path):
    page = tmp_path / "page.html"
    how = ("--target", "amount", "--folds", 3, "--nested-error", 2, "--max-depth", 2)
    done = succeed("cv", csv, *how, "--report", page)
    lines = [line for line in done.stdout.splitlines() if "nested cross-validation" in line]
    assert len(lines) == 1
    assert f'<p class="note">{lines[0]}.</p>' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_a_missing_library_is_named_before_the_table_is_read(unreadable, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    words = f"a report needs {module}, which is not installed: pip install 'dask-dtrees[cli,plot]'"
    args = [unreadable, "--target", "y", "--report", unreadable.with_suffix(".html")]
    check_refused(ask("cv", *args), words)


def test_places_for_no_page(csv, tmp_path):
    words = ["cv", csv, "--target", "class", "--report"]
    check_refused(ask(*words, "-"), "a page goes to a file, not to standard output")
    check_refused(ask(*words, tmp_path), "not a file")
    check_refused(ask(*words, tmp_path / "no" / "a.html"), "there is no folder")
    check_refused(ask(*words, tmp_path / "a.txt"), "a.txt: the page is HTML, so its name ends")
    assert not (tmp_path / "a.txt").exists()
    before = csv.read_bytes()
    check_refused(ask(*words, csv), f"--report {csv} would replace what is read")
    assert csv.read_bytes() == before


def test_who_wants_no_report_waits_for_no_pictures(csv):
    code = f"""if True:
        import sys
        from click.testing import CliRunner
        pictures = {{"matplotlib", "dtrees.cli.report", "dtrees.cli.figures"}}
        assert not pictures & set(sys.modules), "what is loaded beforehand"
        from dtrees.cli import main
        done = CliRunner().invoke(main, ["cv", {str(csv)!r}, "--target", "class"])
        assert done.exit_code == 0, done.output
        assert not pictures & set(sys.modules), pictures & set(sys.modules)
    """
    done = run_forked("-c", code)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page in a real browser."""
    path = browser_path()
    if path is None:
        pytest.skip("there is no Chromium: set $CHROME")
    with browser(path, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.mark.one_of(2)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["adult", "forest", "evil"])
def test_a_browser_shows_the_page(reports, page, name, size, theme):
    width, height, is_phone = SIZES[size]
    page.open(reports[name].as_uri(), width, height, is_phone, prefers_color_scheme=theme)
    assert page.complaints() == []
    strangers = [address for address in page.requests() if not address.startswith("data:")]
    assert strangers == [reports[name].as_uri()]
    pictures = page.evaluate(PICTURES)
    assert len(pictures) == {"adult": 5, "forest": 2, "evil": 5}[name]
    for picture in pictures:
        assert picture["complete"]
        assert picture["width"] > 100
        assert picture["shown"] > 200
        assert picture["alt"]
        assert picture["address"] == "data:image/svg+xml;base64,"
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # no sideways scrolling
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(244, 246, 248)", "dark": "rgb(18, 23, 29)"}[theme]
    if name == "adult":
        assert page.evaluate("document.title") == "Tree for target · dtrees"
        text = page.evaluate("document.body.innerText")
        assert "How well a tree predicts target" in text
        assert "|--- marital-status" in text


def test_a_browser_takes_dark_pictures_in_the_dark(reports, page):
    shown = []
    for theme in ("light", "dark"):
        page.open(reports["adult"].as_uri(), prefers_color_scheme=theme)
        shown.append(page.evaluate("[...document.images].map(image => image.currentSrc)"))
    light, dark = shown
    assert [a == b for a, b in zip(light, dark, strict=True)] == [False] * 4 + [True]


def test_evil_names_do_nothing_in_a_browser(reports, page):
    page.open(reports["evil"].as_uri())
    assert page.evaluate("document.title") == f"Tree for {EVIL_TARGET} · dtrees"
    heading = page.evaluate("document.querySelector('h1').textContent")
    assert heading == f"How well a tree predicts {EVIL_TARGET}"
    assert page.evaluate("document.scripts.length") == 0
    cells = page.evaluate(
        "[...document.querySelectorAll('#columns tbody th')].map(t => t.innerText)"
    )
    assert EVIL["template"] in cells
    assert EVIL["formula"] in cells
    assert "words" in cells
