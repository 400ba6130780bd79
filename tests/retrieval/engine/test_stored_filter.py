"""A request's filter as text: what comes back is what went in, and nonsense is refused."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.access import Principal
from corecube.errors import InvalidRequestError
from retrieval.engine.metadata_conditions import OPERATORS, Condition, Conditions
from retrieval.engine.state import RequestFilter
from retrieval.engine.stored_filter import FullFilter, filter_json, filter_of, read_filter
from retrieval.engine.types import MemoryType
from retrieval.models import SearchRecord
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

_MOMENTS = st.none() | st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
_WORDS = st.text(alphabet='aÄ,{}" ', max_size=4)
_CONDITIONS = st.builds(
    Condition,
    names=st.lists(_WORDS, min_size=1, max_size=2).map(tuple),
    operator=st.sampled_from(sorted(OPERATORS)),
    value=st.none() | _WORDS | st.floats(allow_nan=False, allow_infinity=False) | st.lists(_WORDS).map(tuple),
)
_ASKED = st.builds(
    FullFilter,
    filter=st.builds(
        RequestFilter,
        since=_MOMENTS,
        until=_MOMENTS,
        project=_WORDS,
        memory_types=st.frozensets(st.sampled_from(MemoryType)),
        documents=st.frozensets(st.uuids(), max_size=3),
        source_types=st.frozensets(_WORDS, max_size=2),
        hint=_WORDS,
        min_quality=st.floats(0, 1),
    ),
    conditions=st.none()
    | st.builds(Conditions, each=st.lists(_CONDITIONS, max_size=3).map(tuple), all_of=st.booleans()),
)


@given(_ASKED)
def test_a_trace_and_an_address_give_back_what_was_asked(asked):
    assert filter_of(filter_json(asked)) == asked
    assert read_filter(asked.text) == asked


def test_a_filter_that_an_earlier_release_stored_is_read():
    assert filter_of({"least_quality": 0.5}).filter.min_quality == 0.5


def test_only_what_narrows_is_written():
    assert filter_json(FullFilter()) == {}
    assert FullFilter().text == ""
    asked = FullFilter(RequestFilter(memory_types=frozenset({MemoryType.DECISION, MemoryType.CODE})))
    assert asked.text == '{"memory_types":["code","decision"]}'


def test_words_of_the_asker_are_left_out_where_none_are_kept():
    conditions = Conditions((Condition(("author",), "is", "Ann"),))
    asked = FullFilter(RequestFilter(project="atlas", memory_types=frozenset({MemoryType.CODE})), conditions)
    assert filter_json(asked, keep_words=False) == {"memory_types": ["code"]}


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[" * 3000,
        "7",
        '{"since": 7}',
        '{"project": 7}',
        '{"memory_types": 7}',
        '{"documents": ["7"]}',
        '{"documents": [7]}',
        '{"documents": 7}',
        '{"source_types": [7]}',
        '{"hint": 7}',
        '{"min_quality": 1.5}',
        '{"min_quality": true}',
        '{"min_quality": "high"}',
        '{"min_quality": NaN}',
        '{"conditions": []}',
        '{"conditions": {"all_of": true, "each": [["author", "is", "Ann"]]}}'.replace('"is"', '"like"'),
        '{"conditions": {"all_of": true, "each": [[["author"], "is", {}]]}}',
        '{"conditions": {"all_of": true, "each": [[["author"], "is"]]}}',
        '{"conditions": {"all_of": true, "each": [[["size"], ">", ' + "9" * 400 + "]]}}",
        '{"conditions": {"all_of": true, "each": [[["size"], ">", 1e400]]}}',
        '{"conditions": {"all_of": true, "each": [[["size"], ">", NaN]]}}',
        "{}" + " " * 5000,
    ],
)
def test_nonsense_is_refused(text):
    with pytest.raises(InvalidRequestError, match="filter in the address"):
        read_filter(text)


def test_what_no_store_can_hold_is_taken_out_of_its_words(world):
    text = '{"project": "a\\u0000b", "conditions": {"all_of": true, "each": [[["a\\ud800"], "in", ["c\\u0000d"]]]}}'
    limits = read_filter(text)
    assert limits.filter.project == "a b"
    assert limits.conditions == Conditions((Condition(("a?",), "in", ("c d",)),))
    limited = SearchRequest(text="rollback", filter=limits.filter, conditions=limits.conditions)
    assert search(limited, principal=Principal(world.alice)).is_recorded


@pytest.mark.parametrize("keeps", [True, False])
def test_a_record_keeps_what_the_request_left(world, settings, keeps):
    settings.CORECUBE_KEEP_QUERY_TEXT = keeps
    kept = RequestFilter(since=datetime(2026, 1, 1, tzinfo=UTC), project="atlas")
    search(SearchRequest(text="rollback", preset="helix", filter=kept), principal=Principal(world.alice))
    stored = SearchRecord.objects.get().trace["filter"]
    assert stored == {"since": "2026-01-01T00:00:00+00:00"} | ({"project": "atlas"} if keeps else {})
