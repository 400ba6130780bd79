import pytest

from corecube.errors import InvalidRequestError
from retrieval.evaluation.bench.plan import CONNECTIONS, Plan, chunks_in, connections_in, require_space


def plan(**changes):
    return Plan(**{"preset": "corecube", "chunks": 2000, "scopes": (50,), "queries": 10, "seed": 0} | changes)


@pytest.mark.parametrize("percent", range(1, CONNECTIONS + 1))
def test_a_scope_holds_its_percentage_of_the_connections(percent):
    connections = connections_in(percent)
    assert len(connections) == percent
    assert set(connections) <= set(range(CONNECTIONS))


def test_a_scope_is_spread_over_the_connections():
    assert connections_in(10) == (0, 10, 20, 30, 40, 50, 60, 70, 80, 90)


@pytest.mark.parametrize("chunks", [1000, 1001, 1099, 123_457])
def test_connections_share_all_chunks_evenly(chunks):
    sizes = [chunks_in(number, chunks) for number in range(CONNECTIONS)]
    assert sum(sizes) == chunks
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chunks": 999}, "chunks must be between 1,000 and 5,000,000, not 999"),
        ({"chunks": 5_000_001}, "between 1,000 and 5,000,000"),
        ({"scopes": (50, 0)}, "percentage must be between 1 and 100, not 0"),
        ({"scopes": (101,)}, "not 101"),
        ({"queries": 0}, "queries must be between 1"),
        ({"passes": 0}, "passes must be between 1 and 100, not 0"),
        ({"seed": -1}, "seed must be between 0"),
    ],
)
def test_what_lies_out_of_range_is_refused(changes, message):
    with pytest.raises(InvalidRequestError, match=message):
        plan(**changes)


def test_the_bounds_themselves_are_allowed():
    plan(chunks=1000, scopes=(1, 100), queries=1)
    plan(chunks=5_000_000)


def test_a_disk_without_room_is_refused_with_both_sizes():
    with pytest.raises(InvalidRequestError, match=r"1,000,000 chunks need about 15\.0 GiB; 3\.0 GiB are free"):
        require_space(1_000_000, 3 * 2**30)


def test_a_disk_with_room_is_accepted():
    require_space(1_000_000, 16 * 2**30)
