"""Hits and scopes made by hand, for the pure tests."""

import uuid
from datetime import UTC, datetime

import pytest

from corecube.scope import AccessScope, ConnectionFacts, FreshnessBasis, Inclusion, Sensitivity, TrustLevel
from retrieval.deadline import Deadline
from retrieval.types import ChunkFacts, ChunkId, Hit, Query, ScoreType, SearchState

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def chunk_id(number):
    """Return the id of the chunk with this number; ids order as their numbers do."""
    return ChunkId(uuid.UUID(int=number), 0)


def hit(number, score=0.0, *, text=None, tokens=10, connection_id=1, synced_at=NOW, **signals):
    facts = ChunkFacts(
        connection_id=connection_id,
        title=f"Title {number}",
        uri="",
        source_type="text",
        heading_path=(),
        text=text or f"text {number}",
        token_count=tokens,
        content_hash=text or f"hash {number}",
        page_start=None,
        page_end=None,
        synced_at=synced_at,
        modified_at=None,
    )
    return Hit(chunk_id(number), score, ScoreType.BLEND, signals=signals, facts=facts)


def connection(number=1, *, trust=TrustLevel.REFERENCE, half_life_days=180.0, basis=FreshnessBasis.SYNCED):
    return ConnectionFacts(
        number, f"source-{number}", f"Source {number}", "General", Sensitivity.INTERNAL, trust, half_life_days, basis
    )


def scope(*connections):
    return AccessScope("alice", tuple(Inclusion(it, "user alice", Sensitivity.RESTRICTED) for it in connections))


class Clock:
    """A clock that moves only when told."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def state(clock):
    return SearchState(
        query=Query("rollback", "rollback"),
        scope=scope(connection()),
        deadline=Deadline.after(1.0, clock),
        now=NOW,
        top_k=10,
    )
