"""Finished searches made by hand, for the panels' tests: the engine's own pure stages over three small documents."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from corecube.scope import AccessScope, ConnectionFacts, FreshnessBasis, Inclusion, Sensitivity, TrustLevel
from retrieval.engine.deadline import Deadline
from retrieval.engine.state import Drop, DropReason, Note, Query, SearchState, Span
from retrieval.engine.types import ChunkFacts, ChunkId, Hit, Passage, QueryTerms, ScoreType, Term, TermMatch
from retrieval.presets.corecube.config import CorecubeConfig
from retrieval.presets.corecube.pipeline import build_corecube
from retrieval.presets.preset import Preset
from retrieval.search.configuration import Configuration
from retrieval.search.outcome import SearchOutcome

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
#: Long enough ago that every search below is over.
CLOCK = lambda: 0.0  # noqa: E731 -- a clock that stands still


def chunk_id(number, ordinal=0):
    return ChunkId(uuid.UUID(int=number), ordinal)


def facts(number, *, title=None, text=None, connection_id=1, days=3.0, heading_path=("Staging",), page=None):
    return ChunkFacts(
        connection_id=connection_id,
        title=title or f"Document {number}",
        uri="",
        source_type="markdown",
        heading_path=heading_path,
        text=text or f"Text of document {number}.",
        token_count=20,
        content_hash=f"hash {number}",
        page_start=page,
        page_end=page,
        synced_at=NOW - timedelta(days=days),
        modified_at=None,
    )


def connection(number=1, *, name="Runbooks", trust=TrustLevel.AUTHORITATIVE, half_life_days=30.0):
    return ConnectionFacts(
        id=number,
        slug=name.lower(),
        name=name,
        compartment="Engineering",
        sensitivity=Sensitivity.INTERNAL,
        trust=trust,
        half_life_days=half_life_days,
        freshness_basis=FreshnessBasis.SYNCED,
    )


RUNBOOKS = connection()
WIKI = connection(2, name="Wiki", trust=TrustLevel.REFERENCE)
SCOPE = AccessScope(
    "maya",
    (
        Inclusion(RUNBOOKS, "group platform", Sensitivity.CONFIDENTIAL),
        Inclusion(WIKI, "user maya", Sensitivity.INTERNAL),
    ),
)

#: Found by both legs: 0.6 x 0.9 + 0.3 x 0.8 + 0.1 x 0.5 = 0.83.
FIRST = Hit(
    chunk_id(1),
    0.83,
    ScoreType.BLEND,
    ranks={"dense": 2, "fulltext": 1},
    signals={"cosine": 0.713, "fulltext": 0.382, "rrf": 1 / 62 + 1 / 61, "age_days": 30.0, "freshness": 0.5},
    contributions={"dense": 0.54, "fulltext": 0.24, "freshness": 0.05},
    matches=(TermMatch("rollback", 4.0, 0.3, "A"), TermMatch("stage", 2.0, 0.082, "C")),
    facts=facts(
        1, title="Rollback runbook", text="If a release fails half-way, roll it back. Rollbacks of staging are safe."
    ),
)
#: Found by the vector leg alone: 0.6 x 1.0 + 0.3 x 0.0 + 0.1 x 1.0 = 0.7.
SECOND = Hit(
    chunk_id(2),
    0.7,
    ScoreType.BLEND,
    ranks={"dense": 1},
    signals={"cosine": 0.8, "fulltext": 0.0, "rrf": 1 / 61, "age_days": 0.0, "freshness": 1.0},
    contributions={"dense": 0.6, "fulltext": 0.0, "freshness": 0.1},
    facts=facts(2, title="Incident guide", connection_id=2, heading_path=()),
)
#: Scores a little less than its neighbour would need to pass it.
THIRD = Hit(
    chunk_id(3),
    0.25,
    ScoreType.BLEND,
    ranks={"dense": 3},
    signals={"cosine": 0.5, "fulltext": 0.1, "rrf": 1 / 63, "age_days": 0.0, "freshness": 1.0},
    contributions={"dense": 0.12, "fulltext": 0.03, "freshness": 0.1},
    facts=facts(3, connection_id=2, page=4),
)

SPANS = (
    Span("analyze", 0.001, 0, 0),
    Span("embed", 0.006, 0, 0),
    Span("dense", 0.003, 0, 3, notes=(Note("dense_exact", "Compared all 3 chunks in scope."),), parent="legs"),
    Span("fulltext", 0.002, 0, 1, notes=(Note("fulltext_relaxed", "Relaxed to any of: rollback."),), parent="legs"),
    Span("legs", 0.004, 0, 4),
    Span("fuse", 0.0005, 0, 4),
    Span("complete", 0.002, 4, 4),
    Span("blend", 0.0005, 4, 4),
    Span("dedupe", 0.0005, 4, 3, drops=(Drop(chunk_id(9), DropReason.DUPLICATE, f"same text as {chunk_id(1)}"),)),
    Span("assemble", 0.0055, 3, 2, drops=(Drop(chunk_id(3), DropReason.BUDGET, "500 tokens, 60 of 4000 left"),)),
)


def leg(*ids):
    return tuple(Hit(it, 0.0, ScoreType.COSINE) for it in ids)


def outcome(**changes):
    """Return a finished search of 20 ms in which three hits were found, of which two were packed."""
    state = SearchState(
        query=Query("how to roll back staging", "how to roll back staging"),
        scope=SCOPE,
        deadline=Deadline(2.0, 0.0, CLOCK),
        now=NOW,
        top_k=10,
        terms=QueryTerms((Term("rollback", 2, 4.0), Term("stage", 5, 2.0)), corpus_size=9),
        rankings={"dense": leg(chunk_id(2), chunk_id(1), chunk_id(3)), "fulltext": leg(chunk_id(1))},
        hits=(FIRST, SECOND, THIRD),
        access_checked=True,
        weights={"dense": 0.6, "fulltext": 0.3, "freshness": 0.1},
        passages=(
            Passage(1, FIRST, "### [1] Rollback runbook > Staging — Runbooks — Engineering", 36),
            Passage(2, SECOND, "### [2] Incident guide — Wiki — Engineering", 30),
        ),
        drops=tuple(drop for span in SPANS for drop in span.drops),
        trace=SPANS,
    )
    preset = Preset("corecube", "Hybrid.", CorecubeConfig(), build_corecube, ("dense", "fulltext"))
    configuration = Configuration(config=CorecubeConfig())
    return SearchOutcome(uuid.UUID(int=77), preset, "abc123", replace(state, **changes), configuration)


@pytest.fixture
def finished():
    return outcome()


@pytest.fixture
def make_outcome():
    return outcome
