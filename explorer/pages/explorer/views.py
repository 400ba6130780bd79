"""The Query Explorer."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

from django.conf import settings
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from django.views.decorators.vary import vary_on_headers

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import User
from corecube.scope import AccessScope
from explorer import wording
from explorer.components.answers import AnswerPanel, answer_panel
from explorer.components.drops import chunk_labels
from explorer.components.filter import filter_words
from explorer.components.links import document_url
from explorer.components.modes import mode_in, modes_of
from explorer.components.scope import scope_chips, scope_rows, view_as
from explorer.components.section import picker, section_strip
from explorer.components.sections import has_sections, query_of, section_asked
from explorer.components.sides import Side
from explorer.pages.evaluation.judge import judging_context
from explorer.pages.explorer.draft import draft_changes
from explorer.pages.explorer.examples import examples_for
from explorer.pages.explorer.lost import lanes_of
from explorer.pages.explorer.page import result_panels
from explorer.pages.explorer.recent_searches import Asking, searched
from explorer.pages.explorer.where import pinned_title, reader_of, where_panel
from explorer.viewer import principal_for, signed_in, viewer_of, wants_fragment
from retrieval.answers.answering import prepare
from retrieval.engine.pipeline import HYBRID
from retrieval.engine.stored_filter import AskedFilter, read_filter
from retrieval.models import Document, LanguageModel, PresetVersion, SearchRecord
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS
from retrieval.search.outcome import SearchOutcome
from retrieval.search.queued_searches import PRESET
from retrieval.search.request import SearchRequest

logger = logging.getLogger(__name__)

_TABS: Final = ("hits", "lanes", "context", "answer", "where", "scores", "trace", "scope")
_SERVER_ERROR: Final = 500
#: The header by which a fragment asks for another view of the search that its page shows. It is no part of the address,
#: which people share and which asks anew.
_TRACE: Final = "CoreCube-Trace"
#: Digits of a hit's place; more cannot be one.
_MAX_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """What the page's address asks for."""

    #: None where nothing was asked yet.
    text: str | None
    preset: str
    #: Runs with the preset's draft.
    draft: bool
    #: "hybrid", or the only leg that searches.
    mode: str
    run_as: str
    #: Slugs of the connections to leave out.
    without: tuple[str, ...]
    #: What a logged search left of its scope, as `retrieval.engine.stored_filter` writes it; empty for all.
    filter: str
    tab: str
    #: Place of the hit whose ledger is open, from 1.
    hit: int
    #: The stage that is open in the funnel, or empty.
    stage: str
    #: "table" shows the lanes as one.
    view: str
    #: What the tab "where" looks for: a document's title, address or id, and the document that was picked.
    find: str
    pin: str
    #: The page comes with the answer in it, for browsers without scripts.
    with_answer: bool
    #: The section that the text is the subject of, "report/overview"; empty for a plain question.
    section: str = ""

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Return what a query string asks for; what it cannot mean is left at its default."""
        tab, hit = query.get("tab", ""), query.get("hit", "")
        preset = query.get("preset", DEFAULT_PRESET)
        return cls(
            text=query.get("q"),
            preset=preset,
            draft=query.get("draft") == "1",
            mode=mode_in(preset, query.get("mode") or HYBRID),
            run_as=query.get("as", ""),
            without=left_out(query),
            filter=query.get("filter", ""),
            tab=tab if tab in _TABS else _TABS[0],
            hit=int(hit) if hit.isdecimal() and len(hit) <= _MAX_DIGITS else 1,
            stage=query.get("stage", ""),
            view=query.get("view", ""),
            find=query.get("find", ""),
            pin=query.get("pin", ""),
            with_answer=query.get("answer") == "1",
            section=query.get("section", "") if has_sections(preset) else "",
        )

    @property
    def side(self) -> str:
        """How the comparison names what this page runs."""
        return Side(self.preset, self.draft, self.mode).value

    @property
    def live_side(self) -> str:
        """How the comparison names the same with what is live."""
        return Side(self.preset, mode=self.mode).value


def left_out(query: QueryDict) -> tuple[str, ...]:
    """Return the slugs of the connections that a query string leaves out; an empty one says that none is."""
    return tuple(dict.fromkeys(filter(None, query.getlist("without"))))


@require_GET
@signed_in
@never_cache
@vary_on_headers("HX-Request")
def search(request: HtmxHttpRequest) -> HttpResponse:
    """Show the explorer, and what the query found."""
    viewer, asked = viewer_of(request), Asked.read(request.GET)
    if address := _searched_address(request.GET, asked):
        return redirect(f"{request.path}?{address}")
    fragment = wants_fragment(request)
    context, status = _page(viewer, asked, request.headers.get(_TRACE, "") if fragment else "")
    context |= _form(viewer, asked)
    template = "explorer/explorer/_results_fragment.html" if fragment else "explorer/explorer/search.html"
    return render(request, template, {**context, "section": "explorer"}, status=status)


def _searched_address(query: QueryDict, asked: Asked) -> str:
    """Return the query string that names the mode and the section of the search; empty where this one does."""
    searched = query.copy()
    if query.get("mode"):
        searched["mode"] = asked.mode
    if query.get("section") and not asked.section:
        del searched["section"]
    return "" if searched == query else searched.urlencode()


def _page(viewer: User, asked: Asked, trace: str) -> tuple[dict[str, Any], int]:
    """Return the context of the results, those of the search with this trace id if it is the same, and the status."""
    context: dict[str, Any] = {"asked": asked, "hit_chosen": asked.hit > 1, "run_as": "", "announcement": ""}
    context["picker"] = picker(asked.section) if has_sections(asked.preset) else None
    context["modes"] = {mode: wording.mode_label(mode) for mode in modes_of(asked.preset)}
    try:
        principal = principal_for(viewer, asked.run_as)
        context |= _scope(viewer, principal, asked)
        if asked.text is None:
            pinned = pinned_title(asked.pin, reader_of(principal, context["scope"])) if asked.pin else ""
            examples = examples_for(context["scope"], principal.user.username)
            is_empty = viewer.is_admin and not Document.objects.exists()
            return context | {"examples": examples, "pinned": pinned, "is_empty": is_empty}, 200
        return context | _results(principal, asked, context, trace), 200
    except CoreCubeError as error:
        if error.status >= _SERVER_ERROR:
            logger.exception("explorer.failed code=%s", error.code)
        failure = {"title": failure_title(error), "message": str(error)}
        return {"principal": Principal(viewer), **context, "failure": failure, "announcement": str(error)}, error.status


def _scope(viewer: User, principal: Principal, asked: Asked) -> dict[str, Any]:
    """Return the chips of the whole scope; only an admin learns of connections outside it."""
    scope = scope_for(principal, reveal_excluded=viewer.is_admin)
    chips = scope_chips(scope, asked.without)
    return {
        "principal": principal,
        "run_as": "" if principal.user == viewer else principal.user.username,
        "scope": scope,
        "chips": chips,
        "scope_rows": scope_rows(chips, scope),
        "view_as": view_as(viewer),
        "included": sum(chip.included for chip in chips),
    }


def _results(principal: Principal, asked: Asked, around: Mapping[str, Any], trace: str) -> dict[str, Any]:
    """Search once and return every panel."""
    scope: AccessScope = around["scope"]
    limits = read_filter(asked.filter)
    outcome = searched(_asking(principal, asked, scope, limits), trace)
    panels = result_panels(outcome, labels=chunk_labels(outcome))
    # Otherwise the page asks for the answer once it is shown.
    answer = answered(outcome, principal) if asked.tab == "answer" and asked.with_answer else None
    lanes = lanes_of(outcome) if asked.tab == "lanes" else None
    where = None
    if asked.tab == "where":
        where = where_panel(outcome, reader_of(principal, scope), find=asked.find, pin=asked.pin)
    announcement = (where.announcement if where else "") or panels.announcement
    judging = judging_context(outcome, principal.actor or principal.user)
    around_panels: dict[str, Any] = {
        "answer": answer,
        "lanes": lanes,
        "where": where,
        "draft_changes": draft_changes(outcome),
        "section_strip": section_strip(outcome),
    }
    around_panels["offers_rephrasing"] = _offers_rephrasing(asked)
    around_panels["filter_words"] = filter_words(limits)
    return {"panels": panels, "announcement": announcement, **around_panels, **judging}


def _asking(principal: Principal, asked: Asked, scope: AccessScope, limits: AskedFilter) -> Asking:
    """Return the search that a page asks for; `scope` is all that the principal may see."""
    # What is outside the scope is left out anyway, so a slug from someone else's address does no harm here.
    own = {inclusion.connection.slug for inclusion in scope.included}
    without = tuple(slug for slug in asked.without if slug in own)
    section = section_asked(asked.section, asked.text or "") if asked.section else None
    request = SearchRequest(
        text=query_of(section) if section else asked.text or "",
        section=section,
        preset=asked.preset,
        draft=asked.draft,
        mode=asked.mode,
        narrowing=ScopeRequest(exclude=without),
        filter=limits.filter,
        conditions=limits.conditions,
        reveal_excluded=(principal.actor or principal.user).is_admin,
        surface=SearchRecord.Surface.EXPLORER,
    )
    return Asking(request, principal, scope)


def answered(outcome: SearchOutcome, principal: Principal) -> AnswerPanel:
    """Return the answer to a search, its markers leading to their passages. Raises CoreCubeError."""
    run_as = principal.user.username if principal.actor else ""
    return answer_panel(prepare(outcome, principal), address=partial(document_url, run_as=run_as))


def _form(viewer: User, asked: Asked) -> dict[str, Any]:
    """Return what the form above the results offers; only an admin can choose a person or the draft."""
    people = User.objects.filter(is_active=True).order_by("username") if viewer.is_admin else ()
    drafts = PresetVersion.objects.filter(status=PresetVersion.Status.DRAFT)
    return {
        "offers_draft": viewer.is_admin and (asked.draft or drafts.exists()),
        "presets": PRESETS.values(),
        "people": people,
        "max_query_length": settings.CORECUBE_MAX_QUERY_CHARACTERS,
    }


def _offers_rephrasing(asked: Asked) -> bool:
    """Return whether the slower tier is offered: for its preset as it is live, where there is a language model."""
    is_whole = asked.preset == PRESET and asked.mode == HYBRID and not asked.draft
    return is_whole and LanguageModel.objects.filter(is_enabled=True).exists()


def failure_title(error: CoreCubeError) -> str:
    """Return a heading for an error, from its code: "Query too long"."""
    return error.code.replace("_", " ").capitalize()
