"""`cv`, from inside (click's runner) and from outside (a process)."""

import contextlib
import gzip
import json
import os
import subprocess
import sys
import tomllib

import numpy as np
import pytest
from sklearn.base import clone

import dtrees
from dtrees.cli.terminal import finite
from dtrees.cli.words import counted
from dtrees.io import problem_of, read_table
from dtrees.model_selection.folds import shuffled_folds
from tests.cli.asking import ADULT, ROOT, ask, ask_json, check_refused, process

pd = pytest.importorskip("pandas")


def run(*args):
    return ask("cv", *args)


def run_json(*args):
    return ask_json("cv", *args)


def test_classification_prints_folds_columns_and_tree(csv):
    result = run(csv, "--target", "class", "--folds", 3, "--max-depth", 2)
    assert result.exit_code == 0, result.output
    out = result.stdout
    assert "60 rows, 4 columns (2 ordered, 1 categorical, 1 hybrid)" in out
    assert "target class: classification, 2 classes" in out
    assert "accuracy" in out
    assert "(mean ± standard error of 3 folds)" in out
    assert "importance" in out
    assert "amount " in out
    assert "amount <= " in out
    assert result.stderr == ""


def test_a_tree_that_asks_nothing_is_a_result(csv):
    result = run(csv, "--target", "class", "--folds", 2, "--min-samples-leaf", 60)
    assert result.exit_code == 0, result.output
    assert "no column is used" in result.stdout
    assert "depth 0, 1 leaf\n" in result.stdout


def test_regression_prints_r2(csv):
    result = run(csv, "--target", "amount", "--folds", 3)
    assert result.exit_code == 0, result.output
    assert "target amount: regression" in result.stdout
    assert "R² 0." in result.stdout


def test_json_is_one_document_with_the_promised_fields(csv):
    run_ = run_json(csv, "--target", "class", "--folds", 4, "--seed", 3, "--min-samples-leaf", 2)
    assert set(run_) == {
        *(
            "format",
            "dtrees",
            "file",
            "target",
            "task",
            "model",
            "score",
            "rows",
            "rows_without_target",
        ),
        *("dropped", "parameters", "columns", "folds", "mean", "standard_error", "baseline"),
        *("seconds", "tree"),
    }
    assert run_["format"] == "dtrees.cv/2"
    assert (run_["task"], run_["score"], run_["rows"]) == ("classification", "accuracy", 60)
    assert run_["parameters"]["random_state"] == 3
    assert run_["parameters"]["min_samples_leaf"] == 2
    assert [fold["fold"] for fold in run_["folds"]] == [1, 2, 3, 4]
    assert sum(fold["n_test"] for fold in run_["folds"]) == 60
    scores = [fold["score"] for fold in run_["folds"]]
    assert run_["mean"] == pytest.approx(np.mean(scores))
    assert run_["standard_error"] == pytest.approx(np.std(scores, ddof=1) / 2)
    assert [column["name"] for column in run_["columns"]] == ["number", "word", "mixed", "amount"]
    assert [c["kind"] for c in run_["columns"]] == ["ordered", "categorical", "hybrid", "ordered"]
    assert sum(column["importance"] for column in run_["columns"]) == pytest.approx(1)
    assert set(run_["tree"]) == {"depth", "n_leaves", "text"}
    assert set(run_["folds"][0]) == {"fold", "n_train", "n_test", "score", "depth", "n_leaves"}


def without_seconds(document):
    del document["seconds"]
    del document["parameters"]["n_jobs"]
    return document


def test_the_same_seed_gives_the_same_run_whatever_the_threads(csv):
    one, two = (
        without_seconds(run_json(csv, "--target", "class", "--folds", 3, "--jobs", jobs))
        for jobs in (1, 2)
    )
    assert one == two


def test_folds_and_model_are_those_of_cross_validate(csv):
    run_ = run_json(csv, "--target", "class", "--folds", 3, "--seed", 5, "--max-depth", 2)
    problem = problem_of(read_table(csv), "class")
    splits = shuffled_folds(problem.y, 3, 5, stratified=True)
    tree = dtrees.DecisionTreeClassifier(max_depth=2, random_state=5)
    for fold, (train, test) in zip(run_["folds"], splits, strict=True):
        weight = np.zeros(60)
        weight[train] = 1
        model = clone(tree).fit(problem.X, problem.y, sample_weight=weight)
        assert fold["score"] == model.score(problem.X.iloc[test], problem.y[test])
        assert fold["n_leaves"] == model.get_n_leaves()
        assert fold["depth"] == model.get_depth()
        assert (fold["n_train"], fold["n_test"]) == (len(train), len(test))
    tree.fit(problem.X, problem.y)
    assert run_["tree"]["text"] == dtrees.export_text(tree)
    importances = [column["importance"] for column in run_["columns"]]
    assert importances == tree.feature_importances_.tolist()


def test_a_terminal_sees_what_is_done(csv):
    pty = pytest.importorskip("pty")
    words = [sys.executable, "-m", "dtrees", "cv", csv, "--target", "class", "--folds", "2"]
    ours, theirs = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    done = subprocess.Popen(
        [*map(str, words), "--tune"], stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    )
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while more := os.read(ours, 2**12):
            seen += more
    os.close(ours)
    assert done.wait() == 0
    assert b"growing trees" in seen
    assert b"0/3" in seen  # two folds and all rows
    assert b"3/3" in seen


def test_another_seed_cuts_other_folds(csv):
    one, two = (
        without_seconds(run_json(csv, "--target", "amount", "--folds", 3, "--seed", seed))
        for seed in (1, 2)
    )
    assert one["folds"] != two["folds"]


@pytest.mark.parametrize("name", ["table.csv.gz", "table.parquet"])
def test_the_formats_give_the_same_answer(csv, table, tmp_path, name):
    path = tmp_path / name
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    else:
        path.write_bytes(gzip.compress(csv.read_bytes()))
    expected = without_seconds(run_json(csv, "--target", "class", "--folds", 3))
    got = without_seconds(run_json(path, "--target", "class", "--folds", 3))
    assert got | {"file": ""} == expected | {"file": ""}


def test_rows_without_a_target_are_dropped_and_counted(table, tmp_path):
    table.loc[:4, "class"] = None
    path = tmp_path / "gaps.csv"
    table.to_csv(path, index=False)
    assert run_json(path, "--target", "class", "--folds", 2)["rows_without_target"] == 5
    assert "5 rows without a target are left out" in run(path, "--target", "class").stdout


def test_a_small_class_is_noted_in_one_line(table, tmp_path):
    table.loc[0, "class"] = "maybe"
    path = tmp_path / "small.csv"
    table.to_csv(path, index=False)
    result = run(path, "--target", "class", "--folds", 3)
    assert result.exit_code == 0
    assert result.stderr == "Note: the smallest class has 1 row, not one for every fold.\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--target", "clas"], "no column 'clas' in the table, did you mean 'class'?"),
        (["--target", "xyz"], "there are number, word, mixed, class, amount"),
        (["--target", "class", "--folds", "61"], "--folds 61 is too many for 60 rows"),
        (["--target", "class", "--folds", "50"], "the largest class has"),
        (["--target", "amount", "--folds", "31"], "a fold needs at least 2"),
        (["--target", "class", "--task", "regression"], "is not made of numbers"),
        (["--target", "class", "--criterion", "poisson"], "choose one of gini, entropy, log_loss"),
        (["--target", "amount", "--criterion", "gini"], "choose one of squared_error, poisson"),
        (
            ["--target", "class", "--drop", "wrd"],
            "no column 'wrd' in the table, did you mean 'word'?",
        ),
        (["--target", "class", "--drop", "xyz"], "no column 'xyz' in the table; there are number"),
        (["--target", "class", "--drop", "class"], "the target column 'class' cannot be dropped"),
        (["--target", "class", "--sep", ";"], "there are number,word,mixed,class,amount"),
        (["--target", "class", "--sep", "||"], "must be one ASCII character"),
        (["--target", "class", "--sep", ""], "must be one ASCII character"),
        (["--target", "class", "--sep", "\n"], "no line end: '\\n'"),
        (["--target", "class", "--encoding", "latin-11"], "unknown encoding: 'latin-11'"),
        (["--target", "class", "--encoding", "rot13"], "not a text encoding"),
        (["--target", "class", "--encoding", "utf-16"], "cannot be read as utf-16"),
    ],
)
def test_a_bad_request_is_one_line_and_code_2(csv, args, words):
    check_refused(run(csv, *args), words)


BAD_FILES = [
    ("missing.csv", None, "no such file"),
    ("table.xlsx", b"x", "unknown extension, expected one of .csv, .csv.gz, .parquet"),
    ("empty.csv", b"", "the file is empty"),
    ("header.csv", b"a,class\n", "no row with a value in the target column 'class'"),
    ("alone.csv", b"class\n1\n2\n", "no column beside the target"),
    ("broken.csv.gz", b"not gzip at all", "cannot be read"),
    ("cut.csv.gz", gzip.compress(b"a,class\n" * 9999, mtime=0)[:50], "cannot be read"),
    ("broken.parquet", b"PAR1 not really", "cannot be read"),
    ("ragged.csv", b"a,class\n1,2\n1,2,3\n", "cannot be read"),
    ("unnamed.csv", b"a,class\n1,2,x\n4,3,y\n9,2,x\n2,3,y\n", "has 2 names, but the first row 3"),
    ("row_numbers.csv", b"a,class\n0,2,x\n1,3,y\n2,2,x\n3,3,y\n", "the first row 3 fields"),
    ("two_unnamed.csv", b"a,class\n0,2,5,x\n1,3,6,y\n2,2,5,x\n3,3,6,y\n", "the first row 4"),
    ("commas.csv", b"class,a\n1,2,\n2,3,\n1,2,\n2,3,\n", "end no row with a separator"),
    ("bytes.csv", b"a,class\n\xff\xfe,2\n", "cannot be read as utf-8"),
    ("inf.csv", b"a,class\n1,2\ninf,3\n1,2\n2,3\n", "infinity"),
]


@pytest.mark.parametrize(
    ("name", "content", "words"), BAD_FILES, ids=[name for name, _, _ in BAD_FILES]
)
def test_a_bad_file_is_one_line_and_code_2(tmp_path, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    check_refused(run(path, "--target", "class", "--folds", 2), words)


@pytest.mark.parametrize(
    ("sep", "character"), [(";", ";"), (r"\t", "\t"), ("\t", "\t"), ("|", "|")]
)
def test_separators(csv, table, tmp_path, sep, character):
    path = tmp_path / "other.csv"
    table.to_csv(path, index=False, sep=character)
    expected = without_seconds(run_json(csv, "--target", "class", "--folds", 2))
    got = without_seconds(run_json(path, "--target", "class", "--folds", 2, "--sep", sep))
    assert got | {"file": ""} == expected | {"file": ""}


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8"])
def test_encodings(table, tmp_path, encoding):
    path = tmp_path / "umlauts.csv"
    table = table.rename(columns={"word": "Größe"}).replace({"Größe": {"a": "ä"}})
    table.to_csv(path, index=False, encoding=encoding)
    read = read_table(path, encoding=encoding)
    assert read["Größe"].tolist() == table["Größe"].tolist()
    if encoding != "utf-8":
        check_refused(run(path, "--target", "class"), "cannot be read as utf-8")
    run_ = run_json(path, "--target", "class", "--folds", 2, "--encoding", encoding)
    assert run_["columns"][1]["name"] == "Größe"


@pytest.mark.parametrize("option", ["--sep", "--encoding"])
def test_a_parquet_file_has_neither_separator_nor_encoding(table, tmp_path, option):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    table.to_parquet(path)
    check_refused(run(path, "--target", "class", option, ";"), "a Parquet file has no")


def test_dropped_columns_are_as_if_they_had_never_been_there(csv, table, tmp_path):
    path = tmp_path / "less.csv"
    table.drop(columns=["word", "amount"]).to_csv(path, index=False)
    expected = without_seconds(run_json(path, "--target", "class", "--folds", 2))
    args = [csv, "--target", "class", "--folds", 2, "--drop", "amount", "--drop", "word"]
    got = without_seconds(run_json(*args))
    assert got.pop("dropped") == ["word", "amount"]
    assert expected.pop("dropped") == []
    assert got | {"file": ""} == expected | {"file": ""}
    assert "left out: word, amount\n" in run(*args).stdout


def test_a_column_beside_the_target_has_to_be_left(csv):
    drop = [word for name in ("number", "word", "mixed", "amount") for word in ("--drop", name)]
    check_refused(
        run(csv, "--target", "class", *drop), "no column beside the target 'class' that is"
    )


def test_dates_in_a_csv_file_are_ordered(tmp_path):
    days = pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d").to_numpy(dtype=object)
    classes = np.where(np.arange(60) < 40, "early", "late")
    days[[3, 50]] = ""  # missing
    path = tmp_path / "dates.csv"
    pd.DataFrame({"day": days, "class": classes}).to_csv(path, index=False)
    run_ = run_json(path, "--target", "class", "--folds", 3)
    assert run_["columns"] == [{"name": "day", "kind": "ordered", "importance": 1.0}]
    assert "day <= 2024-02-09 12:00" in run_["tree"]["text"]


def test_a_folder_is_not_a_file(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    check_refused(run(tmp_path / "folder.csv", "--target", "class"), "not a file")


@pytest.mark.parametrize("module", ["pandas", "rich"])
def test_a_missing_extra_is_named(csv, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    result = run(csv, "--target", "class")
    check_refused(result, f"needs {module}, which is not installed: pip install 'dtrees[cli]'")


def test_json_needs_no_rich(csv, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    assert run(csv, "--target", "class", "--json").exit_code == 0


def test_dates_are_no_target(tmp_path):
    path = tmp_path / "dates.csv"
    path.write_text("a,t\n1,2024-01-01\n2,2024-01-02\n")
    check_refused(run(path, "--target", "t"), "the target column 't' holds dates or times")
    table = pd.DataFrame({"a": [1, 2], "t": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    with pytest.raises(ValueError, match="holds dates or times"):
        problem_of(table, "t")


def test_numbers_without_a_word_in_json_are_null():
    assert finite({"a": [1.0, float("nan"), {"b": float("inf")}]}) == {
        "a": [1.0, None, {"b": None}]
    }


def test_the_main_job_from_outside():
    done = process("cv", ADULT, "--target", "target", "--folds", 3, "--max-depth", 5)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "48,842 rows, 14 columns (6 ordered, 8 categorical)" in done.stdout
    assert "\x1b" not in done.stdout
    score = float(done.stdout.split("accuracy ")[-1].split()[0])
    assert 0.84 < score < 0.87


def test_json_from_outside_is_all_there_is_on_standard_output(csv):
    done = process("cv", csv, "--target", "class", "--folds", 2, "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["rows"] == 60


@pytest.mark.long
def test_a_stream_without_block_characters_is_no_error(csv, tmp_path):
    done = process("cv", csv, "--target", "class", "--folds", 2, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout
    options = ["--target", "amount", "--model", "forest", "--oob", "--out", tmp_path / "ä.dtrees"]
    done = process("fit", csv, *options, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "out-of-bag R" in done.stdout


def test_refusal_from_outside(tmp_path):
    done = process("cv", tmp_path / "no.csv", "--target", "class")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("no such file\n")
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_told_before_anything_large_is_imported():
    code = """if True:
        import sys
        from dtrees.cli import main
        try:
            main(["cv", "no.csv", "--target", "class"])
        finally:
            print(sorted({"sklearn", "pandas", "dask"} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "[]\n")
    assert done.stderr == "Error: no.csv: no such file\n"


def test_without_click_the_command_line_says_how_to_get_it():
    code = "import sys; sys.modules['click'] = None; from dtrees.__main__ import run; run()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: the command line needs click")
    assert done.stderr.endswith("pip install 'dtrees[cli]'\n")


def test_the_command_has_a_script():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert scripts["project"]["scripts"] == {"dtrees": "dtrees.__main__:run"}


@pytest.mark.parametrize(("n", "words"), [(0, "0 rows"), (1, "1 row"), (1000, "1,000 rows")])
def test_numbers_of_things(n, words):
    assert counted(n, "row") == words
    assert counted(n, "leaf", "leaves") == words.replace("row", "leaf").replace("leafs", "leaves")


def test_a_single_row_is_not_many(table, tmp_path):
    path = tmp_path / "gap.csv"
    table.loc[3, "class"] = None
    table[["number", "class"]].to_csv(path, index=False)
    text = run(path, "--target", "class", "--folds", 2).stdout
    assert "59 rows, 1 column (1 ordered)" in text
    assert "1 row without a target is left out" in text


def test_version_and_help():
    assert dtrees.__version__ in process("--version").stdout
    help_ = process("cv", "--help")
    assert help_.returncode == 0
    for option in ("--tune", "--tune-simplest", "--tune-nested", "--pruning-table", "--report"):
        assert option in help_.stdout
    for option in ("--target", "--folds", "--max-depth", "--json", "--seed", "--jobs", "--task"):
        assert option in help_.stdout
    for words in ("--drop", "--sep", "--encoding", "ISO 8601", "--scoring", "--hash-folds"):
        assert words in help_.stdout
    for words in ("--cluster", "FILE...", "URL"):
        assert words in process("predict", "--help").stdout
