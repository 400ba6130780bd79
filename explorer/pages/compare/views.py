"""Compare two runs: presets, modes, a draft with the live version, a logged search with the current one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from django.conf import settings
from django.http import HttpResponse, QueryDict
from django.shortcuts import render

from corecube.access import Principal, scope_for
from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import User
from corecube.scope import AccessScope
from explorer import wording
from explorer.charts.chart import Chart
from explorer.charts.rank_flow import rank_flow
from explorer.components import search_page
from explorer.components.drops import chunk_name
from explorer.components.lanes import Facts, Source, first_with_facts, lanes_panel
from explorer.components.preset_numbers import change_rows
from explorer.components.scope import scope_chips
from explorer.components.sections import has_sections, picker, section_asked
from explorer.components.sides import Run, Side, narrowing_of, opposite, read_side, run
from explorer.components.user_menu import user_menu
from explorer.pages.explorer.page import completed
from explorer.viewer import principal_for, render_page, user_page, viewer_of
from retrieval.engine.pipeline import HYBRID
from retrieval.engine.stored_filter import filter_of, read_filter
from retrieval.engine.types import ChunkId
from retrieval.models import PresetVersion, SearchRecord
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS
from retrieval.presets.preset import Preset
from retrieval.ranking.comparison import Comparison, Direction, StageRanking, agreements, deciding
from retrieval.ranking.comparison import compare as compare_rankings
from retrieval.search.request import SearchRequest

LEFT: Final = "a"
RIGHT: Final = "b"
_DEPTH: Final = 20  #: Hits per side, unless a logged search sets the number.


def _compare_panel(left: Run, right: Run, facts: Facts) -> dict[str, Any]:
    """Return two runs side by side; `facts` has the chunks that the reader may see."""
    found = compare_rankings(*([hit.chunk_id for hit in run.hits] for run in (left, right)))
    shown = _shown(right)
    counts = {direction.value: found.count(direction) for direction in Direction}
    words = wording.WORDS["directions"]
    sources = (Source(LEFT, "A", left.hits), Source(RIGHT, "B", right.hits, is_result=True))
    return {
        "left": left,
        "right": right,
        "found": found,
        "counts": counts,
        "announcement": f"{', '.join(f'{counts[name]} {word}' for name, word in words.items())}.",
        # Hits on each side that were deleted or that the reader may not see.
        "unseen": (_unseen(left, facts), _unseen(right, facts)),
        # Label, and the value of each run.
        "facts": tuple((label, value, shown[label]) for label, value in _shown(left).items()),
        **_stages(left, right),
        "notes": tuple((name, badge) for name, run in (("A", left), ("B", right)) for badge in run.notes),
        "changes": change_rows(left.config, right.config) if left.config and right.config else None,
        "lanes": lanes_panel(sources, facts),
        "chart": _chart(found, facts, left, right),
        # Whether the two ran different queries.
        "is_skewed": bool(left.query and right.query and left.query != right.query),
    }


def _stages(left: Run, right: Run) -> dict[str, Any]:
    """Return after which stages the two agree how much, and which one makes the most of the difference."""
    found = agreements(_left_by_stages(left), _left_by_stages(right))
    most = deciding(found)
    return {
        "stages": [(wording.stage_label(it.stage), it) for it in found],
        "deciding": most,
        "deciding_stage": wording.stage_label(most.stage) if most else "",
    }


def _left_by_stages(run: Run) -> list[StageRanking[ChunkId]]:
    # What a stage with legs left holds their hits one after the other.
    parents = {span.parent for span in run.trace}
    return [
        StageRanking(span.stage, [hit.chunk_id for hit in span.left[:_DEPTH]], is_leg=bool(span.parent))
        for span in run.trace
        if span.left and span.stage not in parents
    ]


def _unseen(run: Run, facts: Facts) -> int:
    return sum(hit.chunk_id not in facts.read for hit in run.hits)


def _chart(found: Comparison[ChunkId], facts: Facts, left: Run, right: Run) -> Chart | None:
    titles = {chunk_id: chunk_name(hit.chunk.title, hit.chunk.heading_path) for chunk_id, hit in facts.read.items()}
    return rank_flow(found.moves, titles, left=left.side.label, right=right.side.label)


def _shown(run: Run) -> Mapping[str, str]:
    return {
        "Preset": wording.preset_title(run.side.preset),
        "Version": run.version,
        "Mode": wording.mode_label(run.mode),
        "Fingerprint": run.fingerprint,
        "Connections": str(run.connections),
        "Hits": str(len(run.hits)),
        "Time": f"{run.time} ms" + (" (query vector cached)" if run.had_vector else ""),
        "Confidence": "none" if run.confidence is None else f"{run.confidence:.2f}",
    }


def _side_choices(
    presets: Sequence[Preset], *, drafts: frozenset[str], chosen: Sequence[Side]
) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Return the options of a side by group: presets, single legs of them, reference versions, and what is chosen.

    Those in `drafts` are also offered as their draft.
    """
    tuned = [preset.name for preset in presets if not preset.lines]
    versions = [Side(name, draft) for name in tuned for draft in (False, True) if not draft or name in drafts]
    groups = {
        "Presets": versions,
        "Single leg of a preset": [
            replace(side, mode=mode)
            for side in versions
            for mode in search_page.modes_of(side.preset)
            if mode != HYBRID
        ],
        "Reference versions": [Side(preset.name) for preset in presets if preset.lines],
    }
    known = {side.value for sides in groups.values() for side in sides}
    groups["From the URL"] = [side for side in chosen if side.value not in known]
    return tuple(
        (heading, tuple({side.value: side.label for side in sides}.items()))
        for heading, sides in groups.items()
        if sides
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """The parameters of the page's address."""

    left: Side
    right: Side
    text: str | None  #: None without a query.
    run_as: str
    without: tuple[str, ...] | None  #: Slugs of excluded connections; None if the address has none.
    filter: str | None  #: The filter, as `retrieval.engine.stored_filter` writes it; None if the address has none.
    view: str  #: "table" shows the lanes as a table.
    section: str = ""  #: The section that the text is the subject of, "report/overview"; empty for a plain question.

    @classmethod
    def read(cls, query: QueryDict, viewer: User) -> Self:
        """Return the parameters of a query string. Raises Http404 for a logged search that the viewer may not read."""
        left = read_side(query.get("a", f"{DEFAULT_PRESET}:live:hybrid"), viewer)
        return cls(
            left=left,
            right=read_side(named, viewer) if (named := query.get("b")) else opposite(left),
            text=query.get("q"),
            run_as=query.get("as", ""),
            without=search_page.excluded_slugs(query) if "without" in query else None,
            filter=query.get("filter"),
            view=query.get("view", ""),
            section=query.get("section", ""),
        )

    @property
    def has_sections(self) -> bool:
        """Whether a side gathers evidence for sections."""
        return has_sections(self.left.preset) or has_sections(self.right.preset)

    @property
    def record(self) -> SearchRecord | None:
        """The logged search that sets the user, the query and the connections."""
        return self.left.record or self.right.record


@user_page("GET", varies=True)
def compare(request: HtmxHttpRequest) -> HttpResponse:
    """Show two runs of one query side by side."""
    viewer = viewer_of(request)
    asked = Compared.read(request.GET, viewer)
    context, status = _page(viewer, asked)
    # Only an admin can choose a user or a draft.
    drafts = PresetVersion.objects.filter(status=PresetVersion.Status.DRAFT) if viewer.is_admin else ()
    context |= {
        "choices": _side_choices(
            tuple(PRESETS.values()),
            drafts=frozenset(draft.preset for draft in drafts),
            chosen=(asked.left, asked.right),
        ),
        "user_menu": user_menu(viewer, asked.run_as),
        "max_query_length": settings.CORECUBE_MAX_QUERY_CHARACTERS,
    }
    fragment = "explorer/compare/_compare_fragment.html"
    return render_page(request, "explorer/compare/compare.html", fragment, context, status=status)


@user_page("GET")
def compared_query(request: HtmxHttpRequest) -> HttpResponse:
    """Show the summary of a comparison within another page: what differs, after which stage, and the rank changes."""
    viewer = viewer_of(request)
    context, status = _page(viewer, Compared.read(request.GET, viewer))
    return render(request, "explorer/compare/_compare_query.html", context, status=status)


def _page(viewer: User, asked: Compared) -> tuple[dict[str, Any], int]:
    context: dict[str, Any] = {"asked": asked, "principal": Principal(viewer), "run_as": "", "announcement": ""}
    try:
        principal = _principal(viewer, asked)
        context |= _around(principal, asked)
        return context | _results(principal, context["asked"], context["scope"]), 200
    except CoreCubeError as error:
        return search_page.failed(error, "compare", context)


def _principal(viewer: User, asked: Compared) -> Principal:
    """Return the principal of both sides: the user in the address, else that of the logged search, with its key."""
    record = asked.record
    logged = record.user.username if record and record.user else ""
    principal = principal_for(viewer, asked.run_as or logged)
    return replace(principal, key=record.key) if record and principal.user == record.user else principal


def _around(principal: Principal, asked: Compared) -> dict[str, Any]:
    """Return the scope, and the query and filters that a logged search adds to the address."""
    scope = scope_for(principal)
    record = asked.record
    if record and asked.text is None:
        section = record.trace.get("section", "")
        if section and "subject" in record.trace:
            asked = replace(asked, text=record.trace["subject"], section=section)
        else:
            asked = replace(asked, text=record.query or None)
    if record and asked.without is None:
        asked = replace(asked, without=narrowing_of(record, scope))
    if record and asked.filter is None:
        asked = replace(asked, filter=filter_of(record.trace.get("filter", {})).text)
    return {
        "asked": asked,
        "principal": principal,
        "run_as": search_page.run_as_name(principal),
        "scope": scope,
        "chips": scope_chips(scope, asked.without or ()),
        "picker": picker(asked.section) if asked.has_sections else None,
        "filter_words": search_page.filter_words(read_filter(asked.filter or "")),
    }


def _results(principal: Principal, asked: Compared, scope: AccessScope) -> dict[str, Any]:
    if not asked.text and not (asked.section and asked.text is not None):
        return {}
    panel = _compared(principal, asked, scope)
    return {"compared": panel, "lanes": panel["lanes"], "announcement": panel["announcement"]}


def _compared(principal: Principal, asked: Compared, scope: AccessScope) -> dict[str, Any]:
    """Run both sides. Titles are limited to what the principal may see now."""
    section = section_asked(asked.section, asked.text or "") if asked.section and asked.has_sections else None
    limits = read_filter(asked.filter or "")
    question = SearchRequest(
        text=section.section.query(section.subject) if section else asked.text or "",
        section=section,
        top_k=asked.record.top_k if asked.record else _DEPTH,
        narrowing=search_page.excluding(asked.without or (), scope),
        filter=limits.filter,
        conditions=limits.conditions,
    )
    left, right = (run(side, question, principal) for side in (asked.left, asked.right))
    # Facts that only the log lacks are read.
    terms = right.terms if right.terms.terms else left.terms
    read = completed(first_with_facts((*left.hits, *right.hits)), scope=scope, terms=terms)
    return _compare_panel(left, right, Facts(read, scope))
