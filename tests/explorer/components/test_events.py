"""What happened inside of stages, in words."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.components.events import EventLine, event_lines
from explorer.wording import WORDS
from retrieval.encoders.breaker import BreakerState
from retrieval.engine.state import Drop, DropReason
from retrieval.presets.consolidated.evidence.cascade import Recovered, Tier, TierResult
from retrieval.presets.consolidated.evidence.density import Tightened, TightenSkip
from retrieval.presets.consolidated.evidence.recovery import Diagnosis, SourceResult
from retrieval.presets.consolidated.evidence.scoring import Provider, RerankSkip
from tests.explorer.conftest import chunk_id
from tests.retrieval.conftest import connection, scope

#: The reader may see connection 1, of the compartment Finance.
SCOPE = scope(replace(connection(1), compartment="Finance"))


def line(event, reader=SCOPE):
    return event_lines([event], reader)[0]


def tier(**changes):
    facts = {"tier": Tier.COMPARTMENT, "attempt": 2, "found": 12, "passed": 4, "is_accepted": True,
             "is_expected": True, "seconds": 0.038, "waited_seconds": 0.5}  # fmt: skip
    return TierResult(**(facts | changes))


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ("recovery_tiers", Tier),
        ("diagnoses", Diagnosis),
        ("diagnosis_tones", Diagnosis),
        ("rerank_skips", RerankSkip),
        ("rerank_providers", Provider),
        ("breaker", BreakerState),
        ("tighten_skips", TightenSkip),
    ],
)
def test_every_name_has_words(table, kind):
    assert set(WORDS[table]) == set(kind)


def test_a_tier_says_what_it_found_and_whether_it_was_accepted():
    assert line(tier().event()) == EventLine(
        "Entire compartment, no filters: 12 found, 4 above the threshold, 38 ms, after a wait of 500 ms",
        "accepted",
        "good",
    )
    nothing = tier(is_accepted=False, found=1_200, passed=0, is_expected=False, waited_seconds=0.0)
    assert line(nothing.event()) == EventLine(
        "Entire compartment, no filters: 1,200 found, 0 above the threshold, 38 ms", "nothing", "warn"
    )
    assert line(tier(is_accepted=False).event()).tone == ""
    assert line(tier(is_accepted=False, error="SearchTimeoutError").event()).state == "failed"


def test_an_end_without_evidence_is_named():
    results = (tier(is_accepted=False), tier(is_accepted=False, attempt=3))
    exhausted, cut = Recovered(results=results), Recovered(results=results[:1], is_cut_short=True)
    assert event_lines(exhausted.events, SCOPE)[-1] == EventLine("No hits passed in 2 tiers.", "exhausted", "bad")
    assert event_lines(cut.events, SCOPE)[-1] == EventLine("Timed out after 1 tier.", "ended", "bad")


def probe(*connections):
    return SourceResult(
        source_type="excel", connections=connections, found=3, diagnosis=Diagnosis.RECOVERED, seconds=0.012
    ).event()


def test_a_probe_says_where_it_looked():
    assert line(probe(1, 2)) == EventLine("excel in Finance: 3 found, 12 ms", "recovered", "good")


def test_a_compartment_that_its_reader_may_not_see_is_not_named():
    elsewhere = EventLine("excel: 3 found, 12 ms", "recovered", "good")
    assert line(probe(2)) == line(probe(1), scope()) == elsewhere
    assert "Finance" not in str(probe(1))
    older = {**probe(), "compartment": "Finance"}
    assert line(older) == elsewhere
    assert "Finance" not in line({**older, "event": "an_older_name"}).text


def test_the_density_floor_tells_its_cut_or_why_there_is_none():
    drops = tuple(Drop(chunk_id(number), DropReason.BELOW_FLOOR) for number in range(5))
    cut = Tightened((), 0.42, 11, None, drops)
    assert line({"event": "tighten", **cut.telemetry}) == EventLine(
        "5 chunks below similarity 0.42, from rank 12 on.", "cut"
    )
    kept = Tightened((), None, None, TightenSkip.NO_CLIFF)
    assert line({"event": "tighten", **kept.telemetry}).text == "Not cut: the similarity has no sharp drop."


def test_what_a_note_says_anyway_has_no_line():
    assert event_lines([{"event": "section_setup", "top_k": 8}, {"event": "quota_cut"}], SCOPE) == ()


def test_what_is_kept_beside_the_best_and_what_is_moved():
    kept = {"event": "protected", "keep": 8, "kept": 11, "recovered": 2, "survivors": 1, "cut": 20}
    assert line(kept).text == "Top 8 retained, plus 2 recovered and 1 of required types; 20 cut."
    assert line({**kept, "recovered": 0, "survivors": 0, "cut": 3}).text == "Top 8 retained; 3 cut."
    assert line({"event": "shared", "places": 8, "moved_up": 1}).text == ("1 hit moved up within the first 8 ranks.")


def test_a_skipped_reranker_says_why():
    skipped = line({"event": "cross_encoder_skipped", "reason": "circuit_breaker"})
    assert (skipped.state, skipped.tone) == ("skipped", "warn")
    assert skipped.text.startswith("Cross-encoder skipped: its circuit breaker is open")


def test_an_event_that_is_not_known_is_told_by_its_names_and_numbers():
    event = {"event": "lanes_swept", "lanes": 3, "share": 0.25, "done": True, "names": ["a", "b"], "level": "warning"}
    assert line(event) == EventLine("Lanes swept: lanes 3, share 0.25, done yes, names a, b", "", "warn")
    assert line({}) == EventLine("Event")


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "event",
                "tier",
                "found",
                "ms",
                "tiers",
                "reason",
                "diagnosis",
                "tighten_applied",
                "provider",
                "connections",
            ]
        ),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(allow_nan=False, allow_infinity=False),
            st.sampled_from(["recovery_tier_result", "fallback_exhausted", "source_recovery_result", "x"]),
        ),
    )
)
def test_no_stored_event_breaks_a_page(event):
    assert isinstance(line(event).text, str)
