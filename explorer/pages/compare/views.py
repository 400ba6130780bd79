"""Compare two runs: presets, modes, a draft with the live version, a logged search with the current one."""

from dataclasses import dataclass, replace
from typing import Any, Final, Self

from django.conf import settings
from django.http import HttpResponse, QueryDict

from corecube.access import Principal, scope_for
from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import User
from corecube.scope import AccessScope
from explorer.components.filter import filter_words
from explorer.components.lanes import Facts, first_with_facts
from explorer.components.scope import scope_chips
from explorer.components.search_page import excluded_slugs, excluding, failed, people_for, run_as_name
from explorer.components.sections import has_sections, picker, query_of, section_asked
from explorer.components.sides import Question, Side, narrowing_of, opposite, read_side, run
from explorer.pages.compare.panels import ComparePanel, compare_panel, side_choices
from explorer.pages.explorer.search_lanes import completed
from explorer.viewer import principal_for, render_page, user_page, viewer_of
from retrieval.engine.stored_filter import filter_of, read_filter
from retrieval.models import PresetVersion, SearchRecord
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS

#: Hits per side, unless a logged search sets the number.
_DEPTH: Final = 20


@dataclass(frozen=True, slots=True)
class Compared:
    """The parameters of the page's address."""

    left: Side
    right: Side
    #: None without a query.
    text: str | None
    run_as: str
    #: Slugs of excluded connections; None if the address has none.
    without: tuple[str, ...] | None
    #: The filter, as `retrieval.engine.stored_filter` writes it; None if the address has none.
    filter: str | None
    #: "table" shows the lanes as a table.
    view: str
    #: The section that the text is the subject of, "report/overview"; empty for a plain question.
    section: str = ""

    @classmethod
    def read(cls, query: QueryDict, viewer: User) -> Self:
        """Return the parameters of a query string. Raises Http404 for a logged search that the viewer may not read."""
        left = read_side(query.get("a", f"{DEFAULT_PRESET}:live:hybrid"), viewer)
        return cls(
            left=left,
            right=read_side(named, viewer) if (named := query.get("b")) else opposite(left),
            text=query.get("q"),
            run_as=query.get("as", ""),
            without=excluded_slugs(query) if "without" in query else None,
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
        "section": "compare",
        "choices": side_choices(
            tuple(PRESETS.values()),
            drafts=frozenset(draft.preset for draft in drafts),
            chosen=(asked.left, asked.right),
        ),
        "people": people_for(viewer),
        "max_query_length": settings.CORECUBE_MAX_QUERY_CHARACTERS,
    }
    fragment = "explorer/compare/_compare_fragment.html"
    return render_page(request, "explorer/compare/compare.html", fragment, context, status=status)


def _page(viewer: User, asked: Compared) -> tuple[dict[str, Any], int]:
    """Return the context of the results and the status to answer with."""
    context: dict[str, Any] = {"asked": asked, "principal": Principal(viewer), "run_as": "", "announcement": ""}
    try:
        principal = _principal(viewer, asked)
        context |= _around(principal, asked)
        return context | _results(principal, context["asked"], context["scope"]), 200
    except CoreCubeError as error:
        return failed(error, "compare", context)


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
        asked = _as_logged(asked, record)
    if record and asked.without is None:
        asked = replace(asked, without=narrowing_of(record, scope))
    if record and asked.filter is None:
        asked = replace(asked, filter=filter_of(record.trace.get("filter", {})).text)
    return {
        "asked": asked,
        "principal": principal,
        "run_as": run_as_name(principal),
        "scope": scope,
        "chips": scope_chips(scope, asked.without or ()),
        "picker": picker(asked.section) if asked.has_sections else None,
        "filter_words": filter_words(read_filter(asked.filter or "")),
    }


def _as_logged(asked: Compared, record: SearchRecord) -> Compared:
    """Return the parameters with the query of a logged search, or with its section and subject."""
    section = record.trace.get("section", "")
    if section and "subject" in record.trace:
        return replace(asked, text=record.trace["subject"], section=section)
    return replace(asked, text=record.query or None)


def _results(principal: Principal, asked: Compared, scope: AccessScope) -> dict[str, Any]:
    """Return the comparison; empty without a query."""
    if not asked.text and not (asked.section and asked.text is not None):
        return {}
    panel = _compared(principal, asked, scope)
    return {"compared": panel, "lanes": panel.lanes, "announcement": panel.announcement}


def _compared(principal: Principal, asked: Compared, scope: AccessScope) -> ComparePanel:
    """Run both sides. Titles are limited to what the principal may see now."""
    section = section_asked(asked.section, asked.text or "") if asked.section and asked.has_sections else None
    question = Question(
        text=query_of(section) if section else asked.text or "",
        section=section,
        top_k=asked.record.top_k if asked.record else _DEPTH,
        narrowing=excluding(asked.without or (), scope),
        limits=read_filter(asked.filter or ""),
    )
    left, right = (run(side, question, principal) for side in (asked.left, asked.right))
    # Facts that only the log lacks are read.
    terms = right.terms if right.terms.terms else left.terms
    read = completed(first_with_facts((*left.hits, *right.hits)), scope=scope, terms=terms)
    return compare_panel(left, right, Facts(read, scope))
