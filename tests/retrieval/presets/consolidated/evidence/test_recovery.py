import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.presets.consolidated.evidence.recovery import (
    Diagnoses,
    Diagnosis,
    Missing,
    SourceResult,
    is_beyond_filter,
    is_recovered,
    marked_beyond,
    merged,
    missing_types,
    wanted,
)
from retrieval.presets.consolidated.evidence.section_reading import shipped
from tests.retrieval.presets.consolidated.evidence.conftest import numbers, pools, typed

MEMO = shipped("property_memo")
FINANCIAL = MEMO.section("financial_analysis")


def test_a_required_type_that_is_absent_or_too_rare_is_missing():
    assert missing_types(FINANCIAL, {"pdf": 20}) == (Missing("excel", 0, 4),)
    assert missing_types(FINANCIAL, {"pdf": 20, "excel": 3}) == (Missing("excel", 3, 4),)
    assert missing_types(FINANCIAL, {"pdf": 20, "excel": 4}) == ()
    assert [it.is_absent for it in missing_types(FINANCIAL, {"pdf": 1, "excel": 1})] == [False]


def test_an_optional_type_is_never_missing():
    assert missing_types(MEMO.section("risk_market"), {"costar": 5}) == ()
    assert missing_types(MEMO.section("sponsor_background"), {"pdf": 5}) == ()


@pytest.mark.parametrize("counts", [{}, {"pdf": 0}])
def test_an_empty_pool_is_left_to_the_cascade(counts):
    assert missing_types(FINANCIAL, counts) == ()


def test_several_types_are_missing_in_the_sections_order():
    section = replace(FINANCIAL, required=("costar", "excel"), optional=())
    assert [it.source_type for it in missing_types(section, {"pdf": 3})] == ["costar", "excel"]


@given(st.sampled_from(MEMO.sections), st.dictionaries(st.sampled_from(MEMO.precedence), st.integers(0, 9)))
def test_only_what_is_required_is_ever_looked_for(section, counts):
    for it in missing_types(section, counts):
        assert it.source_type in section.required
        assert it.source_type not in {"pdf", "user"}
        assert it.found < it.floor


def test_an_absent_type_is_probed_once_and_not_once_per_section():
    diagnoses, probes = Diagnoses(), []

    def probe():
        probes.append(1)
        return ()

    said = [diagnoses.look("deal", "excel", probe, wait_seconds=1)[1] for _ in range(5)]
    assert said == [Diagnosis.ABSENT, *[Diagnosis.KNOWN_ABSENT] * 4]
    assert len(probes) == 1
    assert diagnoses.look("other deal", "excel", probe, wait_seconds=1)[1] is Diagnosis.ABSENT
    assert diagnoses.look("deal", "costar", probe, wait_seconds=1)[1] is Diagnosis.ABSENT


def test_a_type_that_is_there_is_found_by_each_section_anew():
    diagnoses, found = Diagnoses(), (typed(1, "excel"),)
    for _ in range(2):
        assert diagnoses.look("deal", "excel", lambda: found, wait_seconds=1) == (found, Diagnosis.RECOVERED)


def test_a_probe_that_fails_tells_nothing():
    diagnoses = Diagnoses()
    with pytest.raises(ZeroDivisionError):
        diagnoses.look("deal", "excel", lambda: 1 / 0, wait_seconds=1)
    assert not diagnoses.is_absent("deal", "excel")
    assert diagnoses.look("deal", "excel", lambda: (), wait_seconds=1)[1] is Diagnosis.ABSENT


def test_sections_side_by_side_probe_once():
    diagnoses, probes, start = Diagnoses(), [], threading.Barrier(8)
    said = []

    def probe():
        probes.append(1)
        return ()

    def look():
        start.wait(10)
        said.append(diagnoses.look("deal", "excel", probe, wait_seconds=10)[1])

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(probes) == 1
    assert sorted(said) == [Diagnosis.ABSENT, *[Diagnosis.KNOWN_ABSENT] * 7]


def test_nobody_waits_longer_than_there_is_time():
    diagnoses, begun, leave = Diagnoses(), threading.Event(), threading.Event()

    def slow():
        begun.set()
        leave.wait(10)
        return ()

    first = threading.Thread(target=diagnoses.look, args=("deal", "excel", slow), kwargs={"wait_seconds": 0})
    first.start()
    begun.wait(10)
    assert diagnoses.look("deal", "excel", slow, wait_seconds=0.01) == ((), Diagnosis.STILL_LOOKING)
    leave.set()
    first.join()
    assert diagnoses.look("deal", "excel", slow, wait_seconds=0)[1] is Diagnosis.KNOWN_ABSENT


def test_recovered_chunks_come_behind_the_pool_once_and_marked():
    pool = (typed(1), typed(2))
    merger = merged(pool, (typed(3, "excel", 0.9), typed(2), typed(3, "excel", 0.1), typed(4, "excel")))
    assert numbers(merger) == [1, 2, 3, 4]
    assert merger[2].score == 0.9
    assert [is_recovered(it) for it in merger] == [False, False, True, True]


@given(pools(), pools())
def test_merging_loses_nothing_and_doubles_nothing(pool, recovered):
    ids = [it.chunk_id for it in merged(pool, recovered)]
    assert ids[: len(pool)] == [it.chunk_id for it in pool]
    assert len(set(ids)) == len(ids)
    assert set(ids) == {it.chunk_id for it in (*pool, *recovered)}


@pytest.mark.parametrize(
    ("found", "floor", "survivors", "limit", "count"),
    [
        # Twice as many as are lacking: 2 x (4 - 1).
        (1, 4, 0, 8, 6),
        # The survivor floor needs 5 - 0 and the quantity floor 2 x 1.
        (0, 1, 5, 8, 5),
        # Never more than the most that are protected.
        (0, 6, 0, 8, 8),
        (0, 6, 12, 3, 3),
    ],
)
def test_so_many_are_recovered_as_the_floors_need(found, floor, survivors, limit, count):
    floors = {"excel": survivors} if survivors else {}
    section = replace(FINANCIAL, quantity_floors={"excel": floor}, survivor_floors=floors)
    assert wanted(Missing("excel", found, floor), section, limit=limit) == count


def test_hits_beyond_the_request_are_marked_and_the_others_left_alone():
    hits = (typed(1, cosine=0.5), typed(2, cosine=0.4))
    marked = marked_beyond(hits, {hits[0].chunk_id})
    assert [is_beyond_filter(it) for it in marked] == [False, True]
    assert marked[0] is hits[0]
    assert marked[1].signals == {"cosine": 0.4, "beyond_filter": 1.0}


@pytest.mark.parametrize(
    ("diagnosis", "level"), [(Diagnosis.RECOVERED, "info"), (Diagnosis.ABSENT, "info"), (Diagnosis.FAILED, "warning")]
)
def test_a_look_is_told_as_an_event(diagnosis, level):
    result = SourceResult(source_type="excel", connections=(4,), found=2, diagnosis=diagnosis, seconds=0.0123)
    assert result.event() == {
        "event": "source_recovery_result",
        "source_type": "excel",
        "connections": [4],
        "found": 2,
        "diagnosis": str(diagnosis),
        "level": level,
        "ms": 12.3,
        "error": "",
    }
