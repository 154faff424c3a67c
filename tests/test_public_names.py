"""What packages offer by name: documented under that name, and nothing that is not meant to be."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import dtrees

PAGES = Path(__file__).resolve().parent.parent / "docs" / "api"
DOCUMENTED = [
    "dtrees",
    "dtrees.estimators",
    "dtrees.export",
    "dtrees.inspection",
    "dtrees.io",
    "dtrees.model_selection",
]
UNDOCUMENTED = {"__version__", "InvalidParameterError"}


def names_on_pages():
    """Full names after autofunction and autoclass."""
    found = set()
    for page in PAGES.glob("*.md"):
        package = ""
        for directive, name in re.findall(r"^\.\. (\w+):: ([\w.]+)$", page.read_text(), re.M):
            if directive == "currentmodule":
                package = name + "."
            elif directive in ("autofunction", "autoclass"):
                found.add(name if name.startswith("dtrees.") else package + name)
    return found


@pytest.mark.parametrize("package", DOCUMENTED)
def test_public_names_are_documented_under_that_name(package):
    module, pages = import_module(package), names_on_pages()
    for name in set(module.__all__) - UNDOCUMENTED:
        home = {f"{package}.{name}", f"dtrees.{name}", f"{dtrees._HOME.get(name)}.{name}"}
        assert home & pages, f"{package}.{name} is on no page"
        value = getattr(module, name)
        assert inspect.isclass(value) or inspect.isfunction(value)
        assert value.__doc__


def test_every_name_on_a_page_can_be_imported_as_it_stands_there():
    for name in names_on_pages():
        package, _, attribute = name.rpartition(".")
        module = import_module(package)
        assert attribute in module.__all__, name


def test_validation_offers_what_users_need_and_no_more():
    module = import_module("dtrees.model_selection")
    on_page = {name for name in names_on_pages() if name.startswith("dtrees.model_selection.")}
    assert {f"dtrees.model_selection.{name}" for name in module.__all__} == on_page
    assert dir(module) == sorted(module.__all__)
