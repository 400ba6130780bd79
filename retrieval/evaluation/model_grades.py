"""A language model grades passages that nobody has judged: always marked, and counted only in runs that say so."""

from collections.abc import Collection
from contextlib import suppress
from typing import Final

from django.db import transaction

from corecube.access import Principal
from corecube.models import User
from retrieval.engine.types import Ranking
from retrieval.errors import JudgingForbiddenError
from retrieval.models import Judgment
from retrieval.presets.contextpack.judge import Judged, RelevanceConfig
from retrieval.ranking.measures import CUTOFF
from retrieval.records.judgments import PassageId, hold, normalised_query
from retrieval.search.outcome import SearchOutcome
from retrieval.search.prepare import ModelJudge

#: The grades of a rubric's score: its steps are 100, 70, 40 and 0, and the bounds lie between them.
_GRADES: Final = ((85.0, 3), (55.0, 2), (20.0, 1))
_CONFIG: Final = RelevanceConfig()


def grade_unjudged(outcome: SearchOutcome, graded: Collection[PassageId], *, principal: Principal, by: User) -> int:
    """Have a language model grade those of the first ten passages that are not in `graded`; return how many it graded.

    It reads only what the routing rules allow for the principal. Each grade is stored as the model's, called by `by`.
    Raises JudgingError, NoJudgeError without a model.
    """
    first: Ranking = outcome.state.hits[:CUTOFF] if outcome.state.access_checked else ()
    passages = {
        hit.chunk_id: passage
        for hit in first
        if hit.facts is not None
        and (passage := PassageId(hit.chunk_id.document_id, hit.facts.content_hash)) not in graded
    }
    hits = tuple(hit for hit in first if hit.chunk_id in passages)
    if not hits:
        return 0
    text = outcome.state.query.text
    scored = [(judged.model, *it) for judged in _judged(text, hits, principal) for it in judged.by_chunk.items()]
    with transaction.atomic():
        for model, chunk_id, it in scored:
            hold(passages[chunk_id], outcome.state.scope)
            Judgment.objects.update_or_create(
                query=normalised_query(text),
                by=by,
                source=Judgment.Source.MODEL,
                **passages[chunk_id]._asdict(),
                defaults={"grade": grade_of(it.score), "explanation": f"by {model}"},
            )
    return len(scored)


def _judged(text: str, hits: Ranking, principal: Principal) -> list[Judged]:
    """Return the scores of hits, connection by connection where no model may read all of them."""
    judge, seconds = ModelJudge(principal), _CONFIG.timeout_ms / 1000
    try:
        return [judge(text, hits, config=_CONFIG, seconds=seconds)]
    except JudgingForbiddenError:
        found = []
        for connection in {hit.chunk.connection_id for hit in hits}:
            with suppress(JudgingForbiddenError):
                own = tuple(hit for hit in hits if hit.chunk.connection_id == connection)
                found.append(judge(text, own, config=_CONFIG, seconds=seconds))
        if not found:
            raise
        return found


def grade_of(score: float) -> int:
    """Return the grade of a rubric's score, 0 to 100: the one whose step is nearest."""
    return next((grade for low, grade in _GRADES if score >= low), 0)
