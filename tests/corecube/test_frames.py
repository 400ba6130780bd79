"""Room for deep calls: what is called comes back as it is, and frames below it map no memory."""

import resource

import pytest

from corecube.frames import with_room

#: Calls around whose depth a border between two chunks of frames must lie.
_DEPTHS = range(1, 120)
_CALLS = 50


def _leaf(value):
    return value


def _deep(depth, value):
    """Call a function many times from `depth` frames down."""
    if depth:
        return _deep(depth - 1, value)
    for _ in range(_CALLS):
        _leaf(value)
    return value


def _faults():
    """Return the pages that calls at every depth had mapped anew."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for depth in _DEPTHS:
        _deep(depth, 1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_a_call_comes_back_with_its_result_or_its_error():
    assert with_room(divmod, 7, 2) == (3, 1)
    assert with_room(sorted, [2, 1], reverse=True) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        with_room(divmod, 1, 0)


def test_frames_below_it_map_no_memory():
    _faults()
    assert with_room(_faults) < _CALLS
