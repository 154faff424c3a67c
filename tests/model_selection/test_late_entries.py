"""An entry of a dict that is made when it is first asked for, and is there like the others."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dtrees.model_selection.late_entries import LateEntry

ASKED = {
    "by name": lambda found: found["late"],
    "get": lambda found: found.get("late"),
    "pop": lambda found: found.pop("late"),
    "setdefault": lambda found: found.setdefault("late", 0),
    "values": lambda found: list(found.values())[-1],
    "items": lambda found: dict(found.items())["late"],
    "popitem": lambda found: found.popitem()[1],
    "dict": lambda found: dict(found)["late"],
    "stars": lambda found: {**found}["late"],
    "copy": lambda found: found.copy()["late"],
    "left": lambda found: (found | {"b": 1})["late"],
    "right": lambda found: ({"b": 1} | found)["late"],
    "into": lambda found: into({}, found)["late"],
    "repr": lambda found: "made" if "'late': 'made'" in repr(found) else None,
    "unequal": lambda found: None if found != {"a": 1, "late": "made"} else "made",
    "equal": lambda found: "made" if found == {"a": 1, "late": "made"} else None,
}


def into(other, found):
    other.update(found)
    return other


@pytest.fixture
def calls():
    return []


@pytest.fixture
def found(calls):
    def make():
        calls.append(1)
        return "made"

    return LateEntry({"a": 1}, "late", make)


def test_nobody_has_asked(found, calls):
    assert found["a"] == found.get("a") == 1
    assert found.get("c") is None
    assert found.get(None) is None
    assert "late" in found
    assert list(found) == list(found.keys()) == ["a", "late"]
    assert len(found) == 2
    assert calls == []


@pytest.mark.parametrize("how", ASKED)
def test_whoever_asks_has_it_made_once(how, found, calls):
    assert ASKED[how](found) == "made"
    found.get("late")
    found.get("late")
    assert len(calls) == 1


def test_whoever_sets_it_needs_no_other(found, calls):
    found["late"] = "given"
    assert found["late"] == "given"
    del found["late"]
    assert dict(found) == {"a": 1}
    with pytest.raises(KeyError):
        found["late"]
    assert calls == []


def test_threads_that_ask_at_once_have_the_same():
    entered, calls = threading.Event(), []

    def make():
        calls.append(1)
        entered.wait()
        return object()

    found = LateEntry({}, "late", make)
    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(found.get, "late") for _ in range(3)]
        entered.set()
        assert len({id(each.result()) for each in asking}) == 1
    assert len(calls) == 1


def test_an_error_is_of_who_asks_and_may_go_away():
    errors = [ValueError("not yet")]

    def make():
        if errors:
            raise errors.pop()
        return "made"

    found = LateEntry({}, "late", make)
    with pytest.raises(ValueError, match="not yet"):
        found["late"]
    assert found["late"] == "made"


def test_one_that_is_there():
    found = LateEntry({"late": 3}, "late", None)
    assert found == {"late": 3}
    assert found == LateEntry({}, "late", lambda: 3)
    with pytest.raises(TypeError):
        hash(found)


def test_plain_dicts_are_pickled(found):
    assert pickle.loads(pickle.dumps(dict(found))) == {"a": 1, "late": "made"}
