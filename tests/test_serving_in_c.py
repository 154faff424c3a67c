"""The C program of the page on serving compiles, and prints what the model predicts."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pages import PYTHON, ROOT

PAGE = ROOT / "docs" / "user_guide" / "deploy.md"
# What the program takes of LightGBM's header, which no wheel holds.
HEADER = """
#include <stdint.h>
typedef void *BoosterHandle, *FastConfigHandle;
#define C_API_DTYPE_FLOAT64 (1)
#define C_API_PREDICT_NORMAL (0)
int LGBM_BoosterCreateFromModelfile(const char *, int *, BoosterHandle *);
int LGBM_BoosterPredictForMatSingleRowFastInit(
    BoosterHandle, const int, const int, const int, const int, const int32_t, const char *,
    FastConfigHandle *);
int LGBM_BoosterPredictForMatSingleRowFast(FastConfigHandle, const void *, int64_t *, double *);
"""


def test_the_program_prints_what_the_model_predicts(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas")
    lightgbm = pytest.importorskip("lightgbm")
    libraries = list((Path(lightgbm.__file__).parent / "lib").glob("lib_lightgbm.*"))
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler (cc)")
    if not libraries:
        pytest.skip("LightGBM's library is not in its wheel")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## LightGBM's text in C") :]
    (table, _), (export, shown) = PYTHON.findall(text)[0], PYTHON.findall(section)[0]
    names = {}
    exec(table, names)
    capsys.readouterr()
    exec(export, names)
    assert capsys.readouterr().out == shown

    Path("serve.c").write_text(re.search(r"^```c\n(.*?)^```", section, re.M | re.S)[1])
    Path("LightGBM").mkdir()
    Path("LightGBM", "c_api.h").write_text(HEADER)
    compile_, run = re.search(r"^```bash\n(cc .*) && (.*)\n```", section, re.M).groups()
    folder = libraries[0].parent
    own = ["-Wall", "-Werror", "-I.", f"-L{folder}", f"-Wl,-rpath,{folder}"]
    subprocess.run([*compile_.split(), *own], check=True)
    said = subprocess.run(run.split(), check=True, capture_output=True, text=True).stdout
    assert said == shown.splitlines(keepends=True)[-1]
