"""The overview's summary for admins: usage, unanswered questions, freshness of the sources, quality of the results.

Every query is bounded: by a period and an index, or by a number of rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import Avg, Count, FloatField, Q
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.urls import reverse

from corecube.access import Principal
from corecube.models import Connection
from explorer import wording
from explorer.components.run_label import label
from explorer.pages.health.panels import Figure
from retrieval.evaluation.components import usual
from retrieval.evaluation.runs import runs_for
from retrieval.ingest.jobs import STALLED
from retrieval.models import EvaluationRun, RunCase, SearchRecord, Sync
from retrieval.operations import feedback, usage
from retrieval.operations.unanswered import Topic, topics, unanswered_questions
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.search.configuration import configuration_of

_MAX_TOPICS: Final = 5
_MAX_SOURCES: Final = 6
_MAX_SETS: Final = 4
_MAX_RUNS: Final = 40  #: The latest runs, of all sets, among which the trends are.
_TREND: Final = 6  #: Runs of a trend.
_LATE: Final = 2  #: A source is late after so many of its intervals without a sync.
_BROKEN: Final = {Sync.Status.FAILED.value, Sync.Status.STOPPED.value, STALLED}
_NONE: Final = "\N{EN DASH}"


def usage_figures(since: datetime, now: datetime, name: str) -> tuple[Figure, ...]:
    """Return who asked how much, how it was received and what it cost; `name` is the period in the query log."""
    asked = SearchRecord.objects.filter(at__gte=since, for_another=False).aggregate(
        people=Count("user", distinct=True), questions=Count("pk", filter=Q(surface=SearchRecord.Surface.CHAT))
    )
    unanswered = SearchRecord.objects.unanswered().filter(at__gte=since).count()
    thumbs = feedback.total(feedback.rated_between(since.date(), now.date()))
    sums = usage.total(usage.used_between(since.date(), now.date()))
    rated = _NONE if thumbs.share is None else f"{thumbs.share:.0%} of {thumbs.total:,}"
    spent = reverse("explorer:usage")
    return (
        Figure("People", f"{asked['people']:,}", reverse("explorer:users"), key="people"),
        Figure("Chat questions", f"{asked['questions']:,}", _log(since=name, surface="chat"), key="questions"),
        Figure("Unanswered", f"{unanswered:,}", f"{reverse('explorer:unanswered')}?since={name}", key="unanswered"),
        Figure("Thumbs up", rated, reverse("explorer:feedback"), key="thumbs"),
        Figure("Model tokens", f"{sums.prompt_tokens + sums.completion_tokens:,}", spent, key="tokens"),
        Figure("Model cost", wording.money(sums.cost), spent, key="cost"),
    )


def _log(**query: str) -> str:
    return f"{reverse('explorer:log')}?{urlencode(query)}"


def unanswered_topics(since: datetime, name: str) -> list[tuple[Topic, str]]:
    """Return the topics of unanswered questions, each with the address of its searches in the query log."""
    return [
        (it, _log(since=name, flag="unsure", **({"q": it.term} if it.term else {})))
        for it in topics(unanswered_questions(since), limit=_MAX_TOPICS)
    ]


@dataclass(frozen=True, slots=True)
class _Source:
    connection: Connection
    tone: str  #: good, warn or bad.
    state: str
    synced: str


def source_rows(rows: Iterable[dict[str, Any]], now: datetime) -> tuple[list[_Source], int]:
    """Return the sources that are synced, late and broken ones first, then the oldest; and how many are not shown."""
    found = [row for row in rows if row["connection"].enabled and row["connection"].kind != "push"]
    oldest = datetime.min.replace(tzinfo=now.tzinfo)
    found.sort(key=lambda row: row["connection"].last_synced_at or oldest)
    sources = sorted((_source(row, now) for row in found), key=lambda it: ("bad", "warn", "good").index(it.tone))
    return sources[:_MAX_SOURCES], max(0, len(sources) - _MAX_SOURCES)


def _source(row: dict[str, Any], now: datetime) -> _Source:
    connection: Connection = row["connection"]
    since = connection.last_synced_at or connection.created_at
    interval = connection.sync_every_minutes
    is_late = interval is not None and now - since > _LATE * timedelta(minutes=interval)
    if row["sync"] and row["sync"]["status"] in _BROKEN:
        tone, state = "bad", "failed"
    elif connection.last_synced_at is None:
        tone, state = "warn", "never synced"
    else:
        tone, state = ("warn", "late") if is_late else ("good", "current")
    return _Source(connection, tone, state, row["synced"])


@dataclass(frozen=True, slots=True)
class _Trend:
    run: EvaluationRun  #: The latest.
    label: str
    ndcg: str
    change: str  #: From the run before; empty without one.
    tone: str
    points: str  #: Of an SVG polyline in a box of 100 by 24, the oldest run first.
    at: str


def quality_trends(principal: Principal, now: datetime) -> list[_Trend]:
    """Return, for the question sets that were measured last, the trend of the default preset, up to its live version.

    Where the default preset was not measured, it is that of the preset that was measured last. A live version that was
    not measured has the trend of those before it.
    """
    latest = usual(runs_for(principal)).filter(status=EvaluationRun.Status.DONE, is_draft=False, overrides={})
    lines: dict[int, list[EvaluationRun]] = {}
    runs = latest.select_related("question_set").defer("connection_ids")[:_MAX_RUNS]
    for run in sorted(runs, key=lambda it: it.preset != DEFAULT_PRESET):
        line = lines.setdefault(run.question_set_id, [])
        if not line or line[0].preset == run.preset:
            line.append(run)
    shown = [_up_to_live(it)[:_TREND] for it in list(lines.values())[:_MAX_SETS]]
    ndcg = Avg(Cast(KeyTextTransform("ndcg", "measures"), FloatField()))
    cases = RunCase.objects.filter(run__in=[run.pk for line in shown for run in line]).order_by()
    means = dict(cases.values("run").annotate(mean=ndcg).values_list("run", "mean"))
    return [_trend(line, [means.get(run.pk) for run in line], now) for line in shown]


def _up_to_live(line: list[EvaluationRun]) -> list[EvaluationRun]:
    """Return the runs of a preset, newest first, without those after the newest one of its live version."""
    preset = preset_named(line[0].preset)
    values = preset.changes(configuration_of(preset).config)
    newest = next((place for place, run in enumerate(line) if run.values == values), 0)
    return line[newest:]


def _trend(line: Sequence[EvaluationRun], means: Sequence[float | None], now: datetime) -> _Trend:
    known = [it for it in reversed(means) if it is not None]
    change = known[-1] - known[-2] if len(known) > 1 else None
    step = 100 / max(1, len(known) - 1)
    return _Trend(
        run=line[0],
        label=label(line[0]),
        ndcg=f"{known[-1]:.3f}" if known else _NONE,
        change="" if change is None else f"{change:+.3f}",
        tone="" if change is None or not round(change, 3) else "good" if change > 0 else "bad",
        points=" ".join(f"{place * step:.1f},{22 - 20 * value:.1f}" for place, value in enumerate(known)),
        at=wording.ago(line[0].created_at, now),
    )
