"""Load: what is at work, against the ladder's rungs."""

from dataclasses import replace

import pytest

from explorer.pages.health.panels import ingest_words, is_memory_tight, load_panel, load_tone, load_words
from retrieval.encoders.admission import IngestLoad, Memory
from retrieval.engine.admission import Admission
from retrieval.engine.admission_ladder import Refusal, Rung

GIB = 2**30
CALM = replace(Admission().load(), active=12, held=3)
INGEST = IngestLoad(16, 2, 0, 8, 5, Memory(GIB, 8 * GIB, 6 * GIB))


def test_the_meter_shows_the_share_and_the_rungs_in_connections():
    panel = load_panel(CALM, INGEST)
    assert (panel["share"], panel["tone"]) == (12.5, "good")
    assert panel["summary"] == "Searches use 12 of 96 connections: normal."
    assert [(connections, x) for x, connections, _ in panel["marks"]] == [
        (76, 79.17),
        (84, 87.5),
        (86, 89.58),
        (88, 91.67),
    ]
    assert {it.key: it.value for it in panel["figures"]} == {
        "slots": "3 of 16",
        "waiting": "0",
        "recovery": "0 of 12",
        "admitted": "0",
        "refused": "0",
        "skipped": "0",
        "longest": "0.0 s",
        "ingest": "5 of 8",
        "memory": "75 %",
    }
    assert panel["refusals"] == ()


def test_refusals_are_told_by_their_reason():
    load = replace(CALM, refused={Refusal.QUEUE: 4, Refusal.HARD_REJECT: 1300})
    panel = load_panel(load, INGEST, refused_early=2)
    assert [(it.key, it.label, it.value) for it in panel["refusals"]] == [
        ("hard_reject", "Too few free connections", "1,300"),
        ("queue", "Expected wait too long", "4"),
        ("door", "Too many open requests", "2"),
    ]
    assert next(it.value for it in panel["figures"] if it.key == "refused") == "1,304"


@pytest.mark.parametrize(
    ("rung", "tone"), [(Rung.CALM, "good"), (Rung.TRIAGE, "warn"), (Rung.RECOVERY_SKIP, "warn"), (Rung.FULL, "bad")]
)
def test_the_tone_is_the_rungs(rung, tone):
    assert load_tone(replace(CALM, rung=rung)) == tone


def test_a_server_with_less_room_is_named():
    assert load_words(CALM) == "Searches use 12 of 96 connections, normal; 3 of 16 search slots in use, 0 waiting."
    assert load_words(replace(CALM, connections=81)).endswith("supports fewer than the configured 96 connections.")


def test_memory_says_how_many_calls_may_go_side_by_side():
    said = "A sync may run 5 of 8 embedding calls in parallel; 75 % of memory in use (6.0 of 8.0 GiB)."
    assert ingest_words(INGEST) == said
    assert not is_memory_tight(INGEST)
    assert is_memory_tight(replace(INGEST, memory=Memory(9, 10)))
    assert ingest_words(replace(INGEST, memory=Memory(9, 0))).endswith("memory usage unknown.")
