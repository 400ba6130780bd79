"""Codes and levels as people read them."""

from datetime import UTC, datetime, timedelta

import pytest

from corecube.keys import KeyState
from corecube.scope import ExcludedConnection, Exclusion, Inclusion, Sensitivity
from explorer import wording
from retrieval.engine.about import StageGroup
from retrieval.engine.admission_ladder import Refusal, Rung
from retrieval.engine.state import DropReason
from retrieval.engine.types import Verdict
from retrieval.evaluation.case_answers import AnswerMeasures
from retrieval.ingest.jobs import STALLED
from retrieval.llm.reachability import ModelState
from retrieval.models import EmbeddingIndex, Sync
from retrieval.presets.consolidated.evidence.depth import Health
from retrieval.presets.consolidated.evidence.recovery import Presence
from retrieval.presets.stage_catalog import stage_classes
from retrieval.ranking.answerability.verdict import Reason
from retrieval.ranking.comparison import Direction
from retrieval.ranking.measures import Measures
from retrieval.records.lifeline.types import StepState

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        ("verdicts", Verdict),
        ("verdict_tones", Verdict),
        ("verdict_reasons", Reason),
        ("section_health", Health),
        ("trace_states", StepState),
        ("stage_groups", StageGroup),
        ("presence", Presence),
        ("presence_details", Presence),
        ("directions", Direction),
        ("measures", Measures.__slots__),
        ("answer_measures", AnswerMeasures.__slots__),
        ("answer_formulas", AnswerMeasures.__slots__),
        ("sensitivities", {it.name.lower() for it in Sensitivity}),
        ("sync_tones", {*Sync.Status, STALLED}),
        ("sync_kinds", Sync.Kind),
        ("key_tones", KeyState),
        ("model_states", ModelState),
        ("model_tones", ModelState),
        ("index_scans", EmbeddingIndex.Scan),
        ("admission_rungs", Rung),
        ("admission_refusals", Refusal),
    ],
)
def test_every_code_has_words(table, codes):
    assert set(wording.WORDS[table]) == {str(code) for code in codes}


def test_every_measure_and_signal_says_how_it_is_computed():
    assert {*Measures.__slots__, *wording.WORDS["signals_in_text"]} <= set(wording.WORDS["formulas"])


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(minutes=59, seconds=59), "59 minutes ago"),
        (timedelta(hours=1), "1 hour ago"),
        (timedelta(days=3, hours=20), "3 days ago"),
        (timedelta(days=59), "59 days ago"),
        (timedelta(days=60), "2 months ago"),
        (timedelta(days=729), "24 months ago"),
        (timedelta(days=730), "2 years ago"),
    ],
)
def test_an_age_is_told_in_its_largest_whole_unit(passed, words):
    assert wording.ago(NOW - passed, NOW) == words


def test_the_rule_that_lets_a_connection_in_names_both_levels(finished):
    inclusion = Inclusion(finished.state.scope.included[0].connection, "group finance-eu", Sensitivity.RESTRICTED)
    assert wording.inclusion_rule(inclusion) == (
        "compartment Engineering through group finance-eu; sensitivity internal ≤ clearance restricted"
    )


@pytest.mark.parametrize("reason", Exclusion)
def test_every_exclusion_has_a_rule_and_a_word(finished, reason):
    excluded = ExcludedConnection(finished.state.scope.included[0].connection, reason)
    assert wording.exclusion_rule(excluded)
    assert wording.exclusion_word(reason)


def test_every_drop_reason_has_words():
    assert all(reason.label for reason in DropReason)


def test_a_note_has_one_label_whichever_stage_leaves_it():
    abouts = [stage.about for stage in stage_classes()]
    labels = {(code, label) for about in abouts for code, label in about.notes.items()}
    assert len({code for code, _ in labels}) == len(labels)
    assert wording.note_label("skipped_rerank") == "rerank skipped"
    assert wording.note_label("deadline_exceeded_before_chunk_retry") == "deadline exceeded before chunk retry"


def test_unknown_codes_are_shown_as_they_are():
    assert wording.stage_label("late_interaction") == "late interaction"
    assert wording.note_label("breaker_open") == "breaker open"
    assert wording.signal_label("rerank") == "Rerank"


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [(None, None, ""), (3, None, "p. 3"), (3, 3, "p. 3"), (3, 4, "pp. 3–4")],  # noqa: RUF001
)
def test_pages(first, last, words):
    assert wording.pages(first, last) == words


@pytest.mark.parametrize(
    ("source_type", "first", "last", "words"),
    [
        ("csv", None, None, ""),
        ("excel", 12, 40, "rows 12–40"),  # noqa: RUF001
        ("json", 3, 3, "record 3"),
        ("code", 7, None, "line 7"),
        ("code", 7, 9, "lines 7–9"),  # noqa: RUF001
    ],
)
def test_rows_are_called_what_they_are(source_type, first, last, words):
    assert wording.rows(first, last, source_type) == words
