"""Passages made by hand, also for properties, which take no fixture."""

import uuid
from datetime import UTC, datetime

from retrieval.engine.types import Answerability, ChunkFacts, ChunkId, Hit, Passage, ScoreType, Verdict

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def made(number, text, title="Leave and absence", headings=()):
    """Return passage `number` of a text, 12 tokens long."""
    facts = ChunkFacts(1, title, "", "markdown", headings, text, 10, "", None, None, NOW, None)
    hit = Hit(ChunkId(uuid.UUID(int=number), 0), 1 / number, ScoreType.BLEND, facts=facts)
    return Passage(number, hit, f"### [{number}] {' '.join(title.split())}", 12)


def judged(verdict=Verdict.ANSWERABLE, **more):
    """Return the verdict of a search."""
    return Answerability(verdict=verdict, confidence=0.9, is_calibrated=False, **more)
