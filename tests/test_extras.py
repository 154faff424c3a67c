"""What an extra of the package brings is imported, or its name is said."""

import math

import pytest

from dtrees._extras import extra


def test_a_module_that_is_there():
    assert extra("math") is math


def test_a_module_that_is_not_there():
    with pytest.raises(ImportError, match=r"the command line needs nowhere.*'dask-dtrees\[cli\]'"):
        extra("nowhere")
    with pytest.raises(ImportError, match=r"a report needs nowhere.*'dask-dtrees\[cli,plot\]'"):
        extra("nowhere", of="cli,plot", for_="a report")
