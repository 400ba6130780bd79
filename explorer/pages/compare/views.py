"""Comparing any two runs: presets, modes, the draft against what is live, a logged search against now."""

import logging
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from django.conf import settings
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from django.views.decorators.vary import vary_on_headers

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import User
from corecube.scope import AccessScope
from explorer.components.filter import filter_words
from explorer.components.lanes import Facts
from explorer.components.scope import scope_chips
from explorer.components.section import picker
from explorer.components.sections import has_sections, query_of, section_asked
from explorer.components.sides import Question, Run, Side, narrowing_of, opposite, read_side, run
from explorer.pages.compare.panels import ComparePanel, compare_panel, side_choices
from explorer.pages.explorer.lost import completed
from explorer.pages.explorer.views import failure_title, left_out
from explorer.viewer import principal_for, signed_in, viewer_of, wants_fragment
from retrieval.engine.stored_filter import filter_of, read_filter
from retrieval.engine.types import ChunkId, Hit
from retrieval.models import PresetVersion, SearchRecord
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS

logger = logging.getLogger(__name__)

#: Hits of each side where no logged search says how many.
_DEPTH: Final = 20
_SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class Compared:
    """What the page's address asks for."""

    left: Side
    right: Side
    #: None where nothing was asked yet.
    text: str | None
    run_as: str
    #: Slugs of the connections to leave out; None where the address does not say.
    without: tuple[str, ...] | None
    #: What is left of its scope, as `retrieval.engine.stored_filter` writes it; None where it does not say.
    filter: str | None
    #: "table" shows the lanes as one.
    view: str
    #: The section that the text is the subject of, "report/overview"; empty for a plain question.
    section: str = ""

    @classmethod
    def read(cls, query: QueryDict, viewer: User) -> Self:
        """Return what a query string asks for. Raises Http404 for a logged search that is not the viewer's to read."""
        left = read_side(query.get("a", f"{DEFAULT_PRESET}:live:hybrid"), viewer)
        return cls(
            left=left,
            right=read_side(named, viewer) if (named := query.get("b")) else opposite(left),
            text=query.get("q"),
            run_as=query.get("as", ""),
            without=left_out(query) if "without" in query else None,
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
        """The logged search that says who asks what, and of which connections."""
        return self.left.record or self.right.record


@require_GET
@signed_in
@never_cache
@vary_on_headers("HX-Request")
def compare(request: HtmxHttpRequest) -> HttpResponse:
    """Show two runs of one query beside each other."""
    viewer = viewer_of(request)
    asked = Compared.read(request.GET, viewer)
    context, status = _page(viewer, asked)
    fragment = wants_fragment(request)
    context |= _form(viewer, asked)
    template = "explorer/compare/_compare_fragment.html" if fragment else "explorer/compare/compare.html"
    return render(request, template, {**context, "section": "compare"}, status=status)


def _page(viewer: User, asked: Compared) -> tuple[dict[str, Any], int]:
    """Return the context of the results and the status to answer with."""
    context: dict[str, Any] = {"asked": asked, "run_as": "", "announcement": ""}
    try:
        principal = _principal(viewer, asked)
        context |= _around(viewer, principal, asked)
        return context | _results(principal, context["asked"], context["scope"]), 200
    except CoreCubeError as error:
        if error.status >= _SERVER_ERROR:
            logger.exception("compare.failed code=%s", error.code)
        failure = {"title": failure_title(error), "message": str(error)}
        return {"principal": Principal(viewer), **context, "failure": failure, "announcement": str(error)}, error.status


def _principal(viewer: User, asked: Compared) -> Principal:
    """Return who both sides search as: whom the address names, else who asked the logged search, with its key."""
    record = asked.record
    logged = record.user.username if record and record.user else ""
    principal = principal_for(viewer, asked.run_as or logged)
    return replace(principal, key=record.key) if record and principal.user == record.user else principal


def _around(viewer: User, principal: Principal, asked: Compared) -> dict[str, Any]:
    """Return the scope and what a logged search adds to the address: its query and its narrowing."""
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
        "run_as": "" if principal.user == viewer else principal.user.username,
        "scope": scope,
        "chips": scope_chips(scope, asked.without or ()),
        "picker": picker(asked.section) if asked.has_sections else None,
        "filter_words": filter_words(read_filter(asked.filter or "")),
    }


def _as_logged(asked: Compared, record: SearchRecord) -> Compared:
    """Return what is asked with the query of a logged search, or with its section and the subject of that."""
    section = record.trace.get("section", "")
    if section and "subject" in record.trace:
        return replace(asked, text=record.trace["subject"], section=section)
    return replace(asked, text=record.query or None)


def _results(principal: Principal, asked: Compared, scope: AccessScope) -> dict[str, Any]:
    """Return the comparison; nothing where there is no query yet."""
    if not asked.text and not (asked.section and asked.text is not None):
        return {}
    panel = _compared(principal, asked, scope)
    return {"compared": panel, "lanes": panel.lanes, "announcement": panel.announcement}


def _compared(principal: Principal, asked: Compared, scope: AccessScope) -> ComparePanel:
    """Run both sides. Titles are those that the principal may see now, whatever a log names."""
    own = {inclusion.connection.slug for inclusion in scope.included}
    section = section_asked(asked.section, asked.text or "") if asked.section and asked.has_sections else None
    question = Question(
        text=query_of(section) if section else asked.text or "",
        section=section,
        top_k=asked.record.top_k if asked.record else _DEPTH,
        narrowing=ScopeRequest(exclude=tuple(slug for slug in asked.without or () if slug in own)),
        limits=read_filter(asked.filter or ""),
    )
    left, right = (run(side, question, principal) for side in (asked.left, asked.right))
    return compare_panel(left, right, _facts(left, right, scope))


def _facts(left: Run, right: Run, scope: AccessScope) -> Facts:
    """Return the chunks of both sides that the scope allows, read where only the log has them."""
    hits: dict[ChunkId, Hit] = {}
    for hit in (*left.hits, *right.hits):
        if hit.chunk_id not in hits or hits[hit.chunk_id].facts is None:
            hits[hit.chunk_id] = hit
    terms = right.terms if right.terms.terms else left.terms
    return Facts(completed(hits, scope=scope, terms=terms), scope)


def _form(viewer: User, asked: Compared) -> dict[str, Any]:
    """Return what the form offers; only an admin can choose a person or a draft."""
    drafts = PresetVersion.objects.filter(status=PresetVersion.Status.DRAFT) if viewer.is_admin else None
    return {
        "choices": side_choices(
            tuple(PRESETS.values()),
            drafts=frozenset(drafts.values_list("preset", flat=True)) if drafts is not None else frozenset(),
            chosen=(asked.left, asked.right),
        ),
        "people": User.objects.filter(is_active=True).order_by("username") if viewer.is_admin else (),
        "max_query_length": settings.CORECUBE_MAX_QUERY_CHARACTERS,
    }
