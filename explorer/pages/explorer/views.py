"""The Query Explorer, and queued searches of the slower tier, whose result is the page of the search's record."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, cast
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django_htmx.http import HttpResponseClientRedirect

from corecube.access import Principal, scope_for
from corecube.errors import CoreCubeError, NotFoundError
from corecube.http import HtmxHttpRequest
from corecube.models import User
from corecube.scope import AccessScope
from explorer import wording
from explorer.components import search_page
from explorer.components.answers import answer_panel
from explorer.components.drops import ChunkLabels, chunk_labels
from explorer.components.funnel import opened_part
from explorer.components.links import document_url
from explorer.components.preset_numbers import ChangeRow, change_rows
from explorer.components.scope import scope_chips, scope_rows, view_as
from explorer.components.sections import has_sections, picker, section_asked, section_strip
from explorer.components.sides import Side
from explorer.components.user_menu import user_menu
from explorer.pages.evaluation.judge import judging_context
from explorer.pages.explorer.examples import examples_for
from explorer.pages.explorer.page import lanes_of, result_panels
from explorer.pages.explorer.recent_searches import Asking, searched
from explorer.pages.explorer.where import pinned_title, reader_of, where_panel
from explorer.viewer import principal_for, principal_of, render_page, user_page, viewer_of, wants_fragment, whole_number
from retrieval.answers.answering import prepare
from retrieval.engine.pipeline import HYBRID
from retrieval.engine.stored_filter import FullFilter, read_filter
from retrieval.models import Document, LanguageModel, PresetVersion, QueuedSearch, SearchRecord
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS
from retrieval.records.arrival import await_record
from retrieval.records.stored_outcome import reopened
from retrieval.search.configuration import configuration_of
from retrieval.search.outcome import SearchOutcome
from retrieval.search.queued_searches import PRESET, queue_search
from retrieval.search.request import SearchRequest
from retrieval.tasks.queued_searches import wake_worker_on_commit

_TABS: Final = ("hits", "lanes", "context", "answer", "where", "scores", "trace", "scope")
#: The header by which a fragment requests another view of the search on its page. It is not part of the address, since
#: a shared address runs a new search.
_TRACE: Final = "CoreCube-Trace"


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters of the page's address."""

    text: str | None  #: None without a query.
    preset: str
    draft: bool
    mode: str  #: "hybrid", or the only leg to search with.
    run_as: str
    without: tuple[str, ...]  #: Slugs of excluded connections.
    filter: str  #: The filter of a logged search, as `retrieval.engine.stored_filter` writes it; empty for none.
    tab: str
    hit: int  #: Rank of the hit whose score breakdown is open.
    part: str  #: The part of the strip that is open, and the stage that is open in it; or empty.
    stage: str
    view: str  #: "table" shows the lanes as a table.
    find: str  #: In the tab "where": the title, address or id to find, and the chosen document.
    pin: str
    with_answer: bool  #: The page includes the answer, for browsers without scripts.
    section: str = ""  #: The section that the text is the subject of, "report/overview"; empty for a plain question.

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Return the parameters of a query string; invalid ones get their default."""
        tab = query.get("tab", "")
        preset = query.get("preset", DEFAULT_PRESET)
        return cls(
            text=query.get("q"),
            preset=preset,
            draft=query.get("draft") == "1",
            mode=search_page.mode_in(preset, query.get("mode") or HYBRID),
            run_as=query.get("as", ""),
            without=search_page.excluded_slugs(query),
            tab=tab if tab in _TABS else _TABS[0],
            hit=whole_number(query.get("hit", ""), 1, digits=4),
            **{name: query.get(name, "") for name in ("filter", "part", "stage", "view", "find", "pin")},
            with_answer=query.get("answer") == "1",
            section=query.get("section", "") if has_sections(preset) else "",
        )

    @property
    def side(self) -> str:
        """The address of this search as a side of a comparison."""
        return Side(self.preset, self.draft, self.mode).value

    @property
    def live_side(self) -> str:
        """The same with the live version."""
        return Side(self.preset, mode=self.mode).value


@user_page("GET", varies=True)
def home(request: HtmxHttpRequest) -> HttpResponseBase:
    """Redirect an admin to the overview, anyone else to the chat; show the Explorer at its earlier address."""
    if request.GET:
        return search(request)
    return redirect("explorer:overview" if viewer_of(request).is_admin else "explorer:chat")


@user_page("GET", varies=True)
def search(request: HtmxHttpRequest) -> HttpResponse:
    """Show the Explorer and the results of the query."""
    viewer, asked = viewer_of(request), Asked.read(request.GET)
    # The address names the mode and section that are searched.
    query = request.GET.copy()
    if query.get("mode"):
        query["mode"] = asked.mode
    if query.get("section") and not asked.section:
        del query["section"]
    if query != request.GET:
        return redirect(f"{request.path}?{query.urlencode()}")
    trace = request.headers.get(_TRACE, "") if wants_fragment(request) else ""
    context, status = _page(viewer, asked, trace)
    panels = context.get("panels")
    if panels and (part := opened_part(request, panels) or _opened_panel(request, panels)):
        template, own = part
        return render(request, template, context | own)
    drafts = PresetVersion.objects.filter(status=PresetVersion.Status.DRAFT)
    context |= {
        # Only an admin can choose a user or the draft.
        "offers_draft": viewer.is_admin and (asked.draft or drafts.exists()),
        "user_menu": user_menu(viewer, asked.run_as),
        "presets": PRESETS.values(),
        "max_query_length": settings.CORECUBE_MAX_QUERY_CHARACTERS,
        "section": "explorer",
    }
    fragment = "explorer/explorer/_results_fragment.html"
    return render_page(request, "explorer/explorer/search.html", fragment, context, status=status)


def _opened_panel(request: HtmxHttpRequest, panels: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the template of the tab Context or of a score breakdown that htmx draws as it opens, and its variables.

    None for any other request.
    """
    if request.htmx.target == "context":
        return "explorer/explorer/_context.html", {}
    row = next((it for it in panels["hits"] if f"ledger-{it['rank']}" == request.htmx.target), None)
    return ("explorer/explorer/_ledger.html", {"row": row}) if row else None


def _page(viewer: User, asked: Asked, trace: str) -> tuple[dict[str, Any], int]:
    """Return the context and status of the results, those of the search with this trace id if it is the same."""
    context: dict[str, Any] = {
        "asked": asked,
        "hit_chosen": asked.hit > 1,
        "principal": Principal(viewer),
        "run_as": "",
        "announcement": "",
        "picker": picker(asked.section) if has_sections(asked.preset) else None,
        "modes": {mode: wording.mode_label(mode) for mode in search_page.modes_of(asked.preset)},
    }
    try:
        principal = principal_for(viewer, asked.run_as)
        context |= _scope(viewer, principal, asked)
        if asked.text is not None:
            return context | _results(principal, asked, context["scope"], trace), 200
        pinned = pinned_title(asked.pin, reader_of(principal, context["scope"])) if asked.pin else ""
        examples = examples_for(context["scope"], principal.user.username)
        is_empty = viewer.is_admin and not Document.objects.exists()
        return context | {"examples": examples, "pinned": pinned, "is_empty": is_empty}, 200
    except CoreCubeError as error:
        return search_page.failed(error, "explorer", context)


def _scope(viewer: User, principal: Principal, asked: Asked) -> dict[str, Any]:
    """Return the chips of the scope; only an admin sees connections outside it."""
    scope = scope_for(principal, reveal_excluded=viewer.is_admin)
    chips = scope_chips(scope, asked.without)
    return {
        "principal": principal,
        "run_as": search_page.run_as_name(principal),
        "scope": scope,
        "chips": chips,
        "scope_rows": scope_rows(chips),
        "view_as": view_as(viewer),
        "included": sum(chip["included"] for chip in chips),
    }


def _results(principal: Principal, asked: Asked, scope: AccessScope, trace: str) -> dict[str, Any]:
    limits = read_filter(asked.filter)
    outcome = searched(_asking(principal, asked, scope, limits), trace)
    # Only read where dropped hits are shown.
    labels = cast("ChunkLabels", SimpleLazyObject(partial(chunk_labels, outcome)))
    panels = result_panels(outcome, labels=labels, tab=asked.tab)
    where = None
    if asked.tab == "where":
        where = where_panel(outcome, reader_of(principal, scope), find=asked.find, pin=asked.pin)
    # The slower tier is for the live or reference version of one preset, and needs a language model.
    is_default = outcome.preset.base == PRESET and asked.mode == HYBRID and not asked.draft
    return {
        "panels": panels,
        "announcement": (where["announcement"] if where else "") or panels["announcement"],
        # Otherwise the page loads the answer later.
        "answer": answered(outcome, principal) if asked.tab == "answer" and asked.with_answer else None,
        "lanes": lanes_of(outcome) if asked.tab == "lanes" else None,
        "where": where,
        "draft_changes": draft_changes(outcome),
        "section_strip": section_strip(outcome),
        "offers_rephrasing": is_default and LanguageModel.objects.filter(is_enabled=True).exists(),
        "filter_words": search_page.filter_words(limits),
        **judging_context(outcome, principal.actor or principal.user),
    }


def draft_changes(outcome: SearchOutcome) -> tuple[ChangeRow, ...]:
    """Return the settings that the draft changes from the live version; empty for a search without a draft."""
    if not outcome.configuration.is_draft:
        return ()
    return change_rows(configuration_of(outcome.preset).config, outcome.config)


def _asking(principal: Principal, asked: Asked, scope: AccessScope, limits: FullFilter) -> Asking:
    """Return the search that a page requests; `scope` is everything that the principal may see."""
    section = section_asked(asked.section, asked.text or "") if asked.section else None
    request = SearchRequest(
        text=section.section.query(section.subject) if section else asked.text or "",
        section=section,
        preset=asked.preset,
        draft=asked.draft,
        mode=asked.mode,
        narrowing=search_page.excluding(asked.without, scope),
        filter=limits.filter,
        conditions=limits.conditions,
        reveal_excluded=(principal.actor or principal.user).is_admin,
        surface=SearchRecord.Surface.EXPLORER,
    )
    return Asking(request, principal, scope)


def answered(outcome: SearchOutcome, principal: Principal) -> dict[str, Any]:
    """Return the answer to a search, its markers linked to their passages. Raises CoreCubeError."""
    return answer_panel(
        prepare(outcome, principal), address=partial(document_url, run_as=search_page.run_as_name(principal))
    )


@user_page("GET")
def answer(request: HtmxHttpRequest, record_id: UUID) -> HttpResponse:
    """Answer a search from its passages; a 404 for the search of another user."""
    viewer = viewer_of(request)
    await_record(record_id)
    record = get_object_or_404(SearchRecord.objects.own(viewer).select_related("user"), pk=record_id)
    principal = principal_of(record, viewer)
    context: dict[str, Any] = {}
    status = 200
    try:
        outcome = reopened(record, principal, text=record.query or request.GET.get("q", ""))
        context["answer"] = answered(outcome, principal)
    except CoreCubeError as error:
        context["failure"] = search_page.failure_of(error)
        status = error.status
    return render(request, "explorer/explorer/_answer_fragment.html", context, status=status)


@user_page("POST", may_cache=True)
def ask(request: HtmxHttpRequest) -> HttpResponse:
    """Queue a search and redirect to its page; show an error if it cannot be queued."""
    try:
        principal = principal_for(viewer_of(request), request.POST.get("as", ""))
        limits = read_filter(request.POST.get("filter", ""))
        job = queue_search(
            SearchRequest(
                text=request.POST.get("q", ""),
                preset=request.POST.get("preset", PRESET),
                narrowing=search_page.excluding(request.POST.getlist("without"), scope_for(principal)),
                filter=limits.filter,
                conditions=limits.conditions,
                surface=SearchRecord.Surface.EXPLORER,
            ),
            principal=principal,
        )
    except NotFoundError:
        raise
    except CoreCubeError as error:
        context = {"title": "Search failed", "message": str(error)}
        return render(request, "error.html", context, status=error.status)
    wake_worker_on_commit()
    return redirect("explorer:queued_search", job.pk)


@user_page("GET")
def queued(request: HtmxHttpRequest, search_id: UUID) -> HttpResponseBase:
    """Show the state of a queued search of the viewer; the fragment redirects to the result once it is done."""
    viewer = viewer_of(request)
    asked = QueuedSearch.objects.filter(user=viewer, actor=None) | QueuedSearch.objects.filter(actor=viewer)
    job = asked.filter(pk=search_id).first()
    if job is None:
        raise NotFoundError
    address = reverse("explorer:record", args=[job.record_id]) if job.record_id else ""
    fragment = wants_fragment(request)
    if fragment and address:
        return HttpResponseClientRedirect(address)
    is_open = job.status in {QueuedSearch.Status.QUEUED, QueuedSearch.Status.RUNNING}
    context = {"job": job, "is_open": is_open, "address": address, "section": "explorer"}
    return render(request, "explorer/explorer/_queued.html" if fragment else "explorer/explorer/queued.html", context)
