"""Precedence, fairness and protection as stages, one after the other."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.types import ScoreType
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.order import FairnessConfig, PrecedenceConfig
from retrieval.presets.consolidated.evidence.scoring import Provider
from retrieval.presets.consolidated.pipeline import build_consolidated
from retrieval.presets.consolidated.stages.fairness import BalanceSources
from retrieval.presets.consolidated.stages.precedence import PreferSources
from retrieval.presets.consolidated.stages.protect import Protect
from retrieval.presets.consolidated.stages.sources import SourceRecoveryConfig
from retrieval.ranking.blend import on_unit_scale
from retrieval.search import runtime
from tests.retrieval.presets.consolidated.evidence.conftest import numbers, typed
from tests.retrieval.presets.consolidated.stages.sectioned import PRECEDENCE, sectioned
from tests.retrieval.presets.consolidated.stages.test_rerank import state_of

CROSS, FALLBACK, NOBODY = Provider
STAGES = (PreferSources(PrecedenceConfig()), BalanceSources(FairnessConfig()), Protect(SourceRecoveryConfig()))


def scored(number, source_type, score, *, provider=CROSS, document=None, **signals):
    made = typed(number, source_type, score, document=document, kind=ScoreType.RELEVANCE, **signals)
    return replace(made, provider=str(provider), contributions={"rerank": score})


def protect(state, hits, **section):
    return STAGES[2](sectioned(state, hits, **section))


def prefer(state, hits):
    return STAGES[0](sectioned(state, hits, keep=8))


def share(state, hits, *, keep):
    return STAGES[1](sectioned(state, hits, keep=keep))


def test_the_cut_leaves_what_was_recovered_and_what_is_needed(state):
    hits = (
        scored(1, "pdf", 0.9),
        scored(2, "pdf", 0.8),
        scored(3, "pdf", 0.7),
        scored(4, "pdf", 0.6),
        scored(5, "costar", 0.5, recovered=1.0),
        scored(6, "xlsx", 0.4),
        scored(7, "excel", 0.3),
        scored(8, "excel", 0.2),
    )
    after = protect(state, hits, policy={"required": ("excel",), "survivor_floors": {"excel": 2}})
    assert numbers(after.hits) == [1, 2, 3, 5, 6, 7]
    assert [it.signals.get("protected") for it in after.hits] == [None, None, None, 5, 6, 7]
    assert after.top_k == 6
    (event,) = after.events
    assert event == {"event": "protected", "keep": 3, "kept": 6, "recovered": 1, "survivors": 2, "cut": 2}
    assert [note.code for note in after.notes] == ["protected"]
    assert [drop.numbers["rank"] for drop in after.drops] == [4, 8]


def test_with_nothing_let_in_as_many_are_wanted_as_before(state):
    after = protect(state, tuple(scored(n, "pdf", 1 - n / 10) for n in range(1, 6)))
    assert (numbers(after.hits), after.top_k, after.notes) == ([1, 2, 3], 3, ())
    assert protect(state, ()).top_k == 3


def test_a_near_tie_goes_to_the_more_believed_type_under_any_of_its_names(state):
    after = prefer(state, (scored(1, "pdf", 0.851), scored(2, "xlsx", 0.850), scored(3, "user", 0.5)))
    assert numbers(after.hits) == [2, 1, 3]
    assert [it.signals["precedence"] for it in after.hits] == pytest.approx([0.004 * 2 / 3, 0.0, 0.004])
    assert [it.score for it in after.hits] == [0.850, 0.851, 0.5]


def test_where_the_fallback_scored_the_boost_is_half(state):
    hits = (scored(1, "pdf", 0.852, provider=FALLBACK), scored(2, "excel", 0.850, provider=FALLBACK))
    after = prefer(state, hits)
    assert numbers(after.hits) == [1, 2]
    assert after.hits[1].signals["precedence"] == pytest.approx(0.002 * 2 / 3)
    assert numbers(prefer(state, [replace(it, provider=str(CROSS)) for it in hits]).hits) == [2, 1]


def test_a_type_without_precedence_gets_nothing(state):
    assert prefer(state, (scored(1, "docx", 0.5),)).hits[0].signals["precedence"] == 0.0


def test_what_nothing_scored_stays_behind_whatever_its_score_and_type(state):
    behind = (scored(2, "pdf", 0.9, provider=NOBODY), scored(3, "user", 0.95, provider=NOBODY))
    after = prefer(state, (scored(1, "pdf", -0.2), *behind))
    assert numbers(after.hits) == [1, 2, 3]
    assert "precedence" not in after.hits[1].signals


def test_the_first_places_are_shared_among_documents(state):
    hits = (*(scored(n, "pdf", 1 - n / 10, document=1) for n in range(4)), scored(8, "pdf", 0.1, document=2))
    after = share(state, hits, keep=4)
    assert [it.chunk_id.ordinal for it in after.hits] == [0, 1, 8, 2, 3]
    assert [it.signals["merit_rank"] for it in after.hits] == [1, 2, 5, 3, 4]
    assert after.events[-1] == {"event": "shared", "places": 4, "moved_up": 1}


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_search_without_a_section_is_left_alone(state, stage):
    plain = replace(state, hits=(scored(1, "pdf", 0.9),))
    assert stage(plain) == plain


def chain(state, hits, **section):
    """Return what all three stages make of a pool, best first."""
    state = sectioned(state, hits, **section)
    for stage in STAGES:
        state = stage(state)
    return state


def test_a_dominant_document_does_not_take_every_place_that_is_kept(state):
    """Fifteen chunks of one report lead by a little before five spreadsheets; ten are kept."""
    hits = [scored(n, "pdf", 0.9 - n / 1000, document=1) for n in range(15)]
    hits += [scored(20 + n, "excel", 0.88 - n / 1000, document=2 + n) for n in range(5)]
    after = chain(state, hits, keep=10)
    assert [it.chunk.source_type for it in after.hits] == ["pdf"] * 5 + ["excel"] * 5
    assert [it.signals["merit_rank"] for it in after.hits] == [1, 2, 3, 4, 5, 16, 17, 18, 19, 20]
    assert {it.numbers["rank"] for it in after.drops} == set(range(11, 21))
    assert not any("protected" in it.signals for it in after.hits)


def test_one_source_type_leaves_a_quarter_of_the_places_to_others(state):
    hits = [scored(n, "pdf", 0.9 - n / 1000) for n in range(15)] + [scored(20 + n, "excel", 0.5) for n in range(5)]
    kinds = [it.chunk.source_type for it in chain(state, hits, keep=10).hits]
    assert kinds == ["pdf"] * 8 + ["excel"] * 2


def test_precedence_decides_a_near_tie_for_the_last_place(state):
    hits = [scored(n, "costar", 0.9) for n in range(7)] + [scored(8, "user", 0.9), scored(9, "user", 0.9)]
    hits += [scored(10, "pdf", 0.8501), scored(11, "excel", 0.8500)]
    after = chain(state, hits, keep=10)
    assert numbers(after.hits)[-1] == 11
    assert [it.chunk_id.document_id.int for it in after.drops] == [10]


def test_a_required_type_that_the_pool_had_is_not_lost_at_the_cut(state):
    hits = [scored(n, "pdf", 0.9 - n / 100) for n in range(4)] + [scored(9, "costar", 0.1)]
    hits += [scored(10, "costar", 0.05)]
    kept = protect(state, hits, policy={"required": ("costar",)}).hits
    assert [(it.chunk_id.document_id.int, it.signals.get("protected")) for it in kept][3:] == [(9, 5)]
    assert numbers(protect(state, hits, policy={"optional": ("costar",)}).hits) == [0, 1, 2]


def test_the_preset_lets_precedence_and_fairness_decide_before_the_cut(world):
    order = [it.name for it in build_consolidated(ConsolidatedConfig(), runtime.resources()).stages]
    after = order[order.index("rerank") :]
    assert after[1:4] == ["precedence", "fairness", "protect"]


@given(
    rows=st.lists(
        st.tuples(st.sampled_from(PRECEDENCE), st.integers(0, 20), st.integers(1, 4), st.booleans()), max_size=25
    ),
    keep=st.integers(1, 8),
    provider=st.sampled_from([CROSS, FALLBACK]),
)
def test_the_final_order_follows_from_what_each_hit_tells(rows, keep, provider):
    """Recompute it from scores and signals: by score and boost, then by the places that were shared."""
    hits = [
        scored(n, kind, score / 500, provider=provider, document=document, **({"recovered": 1.0} if is_new else {}))
        for n, (kind, score, document, is_new) in enumerate(rows)
    ]
    hits.sort(key=lambda it: (-it.score, it.chunk_id))
    state = chain(state_of(), hits, keep=keep)
    by_merit = sorted(state.hits, key=lambda it: it.signals["merit_rank"])
    boosted = STAGES[0](sectioned(state_of(), hits, keep=keep))
    shared = [it.chunk_id for it in STAGES[1](boosted).hits]
    merit = {it.chunk_id: rank for rank, it in enumerate(boosted.hits, start=1)}
    assert [it.signals["merit_rank"] for it in state.hits] == [merit[it.chunk_id] for it in state.hits]
    assert by_merit == sorted(by_merit, key=lambda it: -(on_unit_scale(it) + it.signals["precedence"]))
    assert list(state.hits[keep:]) == sorted(state.hits[keep:], key=lambda it: it.signals["merit_rank"])
    for it in state.hits:
        assert sum(it.contributions.values()) == it.score
        rank = 1 + shared.index(it.chunk_id)
        assert it.signals.get("protected", rank) == rank
        assert ("protected" in it.signals) == (rank > keep)
    assert [it.chunk_id for it in state.hits[:keep]] == shared[:keep]
    assert state.top_k == max(keep, len(state.hits))
