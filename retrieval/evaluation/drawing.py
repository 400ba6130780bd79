"""Draw questions for a set from the log of searches."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import log
from typing import Final

from django.db.models import Q
from django.utils import timezone

from corecube.errors import InvalidRequestError
from corecube.models import User
from retrieval.evaluation.question_sets import CaseFacts, save_case
from retrieval.models import QuestionSet, SearchRecord
from retrieval.models.search import FLAGS
from retrieval.records.judgments import normalised_query

MAX_DRAWN: Final = 500
_LAST: Final = timedelta(days=90)
_MAX_READ: Final = 50_000  #: Records of the log that are considered, the newest.
_SLOW: Final = 0.95  #: Searches that take longer than this share of all ones are slow.


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """A query of the log, in whatever case and white space it was typed, with its newest search."""

    record: SearchRecord
    searches: int


#: What can be drawn, with the words of the form. The searches of each are those that its condition leaves.
SAMPLES: Final[Mapping[str, str]] = {
    "random": "any question, at random",
    "frequent": "frequent questions",
    "refused": "refused questions",
    "disliked": "answers with thumbs down",
    "unsure": "low confidence",
    "slow": "slow searches",
}


def draw(question_set: QuestionSet, sample: str, number: int, *, actor: User, seed: int | None = None) -> int:
    """Add up to `number` questions of the last 90 days' log to a set, each with its user's access; return how many.

    Each question is drawn once, also where several users have it; those of the set are not drawn again. *Frequent*
    draws with probability proportional to the number of searches, without replacement, as in OpenSearch's PPTSS;
    the others give each question the same chance. Raises InvalidRequestError for an unknown sample or number.
    """
    if sample not in SAMPLES:
        raise InvalidRequestError(f"A sample is one of: {', '.join(SAMPLES)}.")
    if not 1 <= number <= MAX_DRAWN:
        raise InvalidRequestError(f"Between 1 and {MAX_DRAWN} questions can be drawn at once.")
    has = {normalised_query(query) for query in question_set.cases.values_list("query", flat=True)}
    weight: Callable[[LoggedQuery], int] = (lambda it: it.searches) if sample == "frequent" else (lambda _: 1)
    logged = [it for query, it in _logged(sample).items() if query not in has]
    drawn = _weighted_sample(logged, weight, number, random.Random(seed))  # noqa: S311 -- no secret
    for it in drawn:
        facts = CaseFacts(user=it.record.user, tags=("log",), record=it.record)
        save_case(question_set, it.record.query, actor=actor, facts=facts)
    return len(drawn)


def _weighted_sample(
    logged: Iterable[LoggedQuery], weight: Callable[[LoggedQuery], int], number: int, chance: random.Random
) -> list[LoggedQuery]:
    """Return a sample without replacement, with chances proportional to weights.

    Each item's time of arrival is exponential with its weight as rate; the first ones are drawn (Efraimidis and
    Spirakis, Information Processing Letters 97, 2006).
    """
    arrivals = ((-log(1 - chance.random()) / weight(it), place, it) for place, it in enumerate(logged))
    return [it for _, _, it in sorted(arrivals)[:number]]


def _logged(sample: str) -> dict[str, LoggedQuery]:
    """Return the queries of a sample, normalised: what active users asked, and searched for in the Explorer."""
    records = SearchRecord.objects.filter(at__gte=timezone.now() - _LAST, user__is_active=True)
    in_explorer = records.filter(surface=SearchRecord.Surface.EXPLORER, for_another=False).exclude(query="")
    recent = (records.asked() | in_explorer).filter(_condition(sample))
    found: dict[str, LoggedQuery] = {}
    for record in recent.select_related("user").defer("trace").order_by("-at", "-id")[:_MAX_READ]:
        if query := normalised_query(record.query):
            before = found.get(query)
            found[query] = LoggedQuery(before.record, before.searches + 1) if before else LoggedQuery(record, 1)
    return found


def _condition(sample: str) -> Q:
    if sample == "slow":
        durations = list(SearchRecord.objects.order_by("-at").values_list("milliseconds", flat=True)[:_MAX_READ])
        durations.sort()
        return Q(milliseconds__gt=durations[int(_SLOW * len(durations))]) if durations else Q()
    return FLAGS.get(sample, Q())
