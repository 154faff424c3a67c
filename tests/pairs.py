"""Products of parameters, of which `make test` takes a few that meet every pair of values."""

from itertools import combinations, product

import pytest


def parametrize_pairs(**axes):
    """A test for all mixes of values; those that bring no new pair of values are marked `long`.

    Parameters
    ----------
    **axes : iterable
        The values of an argument of the test, by its name.
    """
    values = [list(each) for each in axes.values()]
    short = some_of([len(each) for each in values])
    params = []
    for places in product(*(range(len(each)) for each in values)):
        mix = [each[place] for each, place in zip(values, places, strict=True)]
        params.append(pytest.param(*mix, marks=() if places in short else pytest.mark.long))
    return pytest.mark.parametrize(list(axes), params)


def parametrize_in_turn(n, one, other):
    """A test for mixes of values of two kinds, each of the first with ``n`` of the others in turn.

    The mixes that are left out are marked `long`: for products in which nothing depends on a pair,
    so that a bug of either value shows in any of its mixes.

    Parameters
    ----------
    n : int
    one, other : pair of str and list
        Names of arguments, with commas, and their values: tuples, if there are several names.
    """
    (names, values), (others, turns) = one, other
    firsts = values if "," in names else [(each,) for each in values]
    seconds = turns if "," in others else [(each,) for each in turns]
    params = []
    for i, first in enumerate(firsts):
        for j, second in enumerate(seconds):
            is_short = (j - i) % len(seconds) < n
            mark = () if is_short else pytest.mark.long
            params.append(pytest.param(*first, *second, marks=mark))
    return pytest.mark.parametrize(f"{names},{others}", params)


def some_of(lengths):
    """Numbers of values, as few mixes as are easily found, so that any two of them meet."""
    mixes = list(product(*map(range, lengths)))
    missing = {pair for mix in mixes for pair in pairs_of(mix)}
    found = []
    while missing:
        found.append(max(mixes, key=lambda mix: len(missing & pairs_of(mix))))
        missing -= pairs_of(found[-1])
    return found


def pairs_of(mix):
    """Any two values of a mix, each with its place."""
    return set(combinations(enumerate(mix), 2))


def rest_of(mixes, n):
    """Places of all but n mixes, which meet as many values as they can.

    Each of them brings the most values that none before it has; the first of those in order.

    Parameters
    ----------
    mixes : list of dict
        Values by the names of their arguments. One that is no number or string equals itself only.
    n : int
    """
    rest = {place: {of_value(*each) for each in mix.items()} for place, mix in enumerate(mixes)}
    for _ in range(n):
        met = rest.pop(max(rest, key=lambda place: len(rest[place])))
        for values in rest.values() if met else ():
            values -= met
    return list(rest)


def of_value(name, value):
    """What is equal for equal values of an argument; of a partial function, the function is."""
    value = getattr(value, "func", value)
    return name, type(value), value if isinstance(value, (str, int, float)) else id(value)
