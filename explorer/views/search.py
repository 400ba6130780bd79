"""The Query Explorer."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
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
from explorer.answers import AnswerPanel, answer_panel
from explorer.examples import examples_for
from explorer.labels import chunk_labels
from explorer.panels.page import result_panels
from explorer.panels.scope import scope_chips, scope_rows
from explorer.snippets import Stem
from explorer.templatetags.explorer_format import document_url
from explorer.views.viewer import principal_for, signed_in, viewer_of, wants_fragment
from retrieval.generate.providers import answer_provider
from retrieval.generate.words import stemmer
from retrieval.models import PresetVersion
from retrieval.presets import DEFAULT_PRESET, PRESETS
from retrieval.services import SearchOutcome, SearchRequest
from retrieval.services import search as run_search

logger = logging.getLogger(__name__)

_TABS: Final = ("hits", "lanes", "context", "answer", "where", "trace", "scope")
_SERVER_ERROR: Final = 500
#: Digits of a hit's place; more cannot be one.
_MOST_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """What the page's address asks for."""

    #: None where nothing was asked yet.
    text: str | None
    preset: str
    #: Runs with the preset's draft.
    draft: bool
    run_as: str
    #: Slugs of the connections to leave out.
    without: tuple[str, ...]
    tab: str
    #: Place of the hit whose ledger is open, from 1.
    hit: int
    #: The stage that is open in the funnel, or empty.
    stage: str
    #: What the tab "where" looks for: a document's title, address or id, and the document that was picked.
    find: str
    pin: str

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Return what a query string asks for; what it cannot mean is left at its default."""
        tab, hit = query.get("tab", ""), query.get("hit", "")
        return cls(
            text=query.get("q"),
            preset=query.get("preset", DEFAULT_PRESET),
            draft=query.get("draft") == "1",
            run_as=query.get("as", ""),
            without=tuple(dict.fromkeys(query.getlist("without"))),
            tab=tab if tab in _TABS else _TABS[0],
            hit=int(hit) if hit.isdecimal() and len(hit) <= _MOST_DIGITS else 1,
            stage=query.get("stage", ""),
            find=query.get("find", ""),
            pin=query.get("pin", ""),
        )


@require_GET
@signed_in
@never_cache
@vary_on_headers("HX-Request")
def search(request: HtmxHttpRequest) -> HttpResponse:
    """Show the explorer, and what the query found."""
    viewer, asked = viewer_of(request), Asked.read(request.GET)
    context, status = _page(viewer, asked)
    fragment = wants_fragment(request)
    if not fragment:
        context |= _form(viewer, asked)
    template = "explorer/_results_fragment.html" if fragment else "explorer/search.html"
    return render(request, template, {**context, "section": "explorer"}, status=status)


def _page(viewer: User, asked: Asked) -> tuple[dict[str, Any], int]:
    """Return the context of the results and the status to answer with."""
    context: dict[str, Any] = {"asked": asked, "hit_chosen": asked.hit > 1, "run_as": "", "announcement": ""}
    try:
        principal = principal_for(viewer, asked.run_as)
        context |= _scope(viewer, principal, asked)
        if asked.text is None:
            return context | {"examples": examples_for(context["scope"], principal.user.username)}, 200
        return context | _results(principal, asked, context, reveal=viewer.is_admin), 200
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
        "included": sum(chip.included for chip in chips),
    }


def _results(principal: Principal, asked: Asked, around: Mapping[str, Any], *, reveal: bool) -> dict[str, Any]:
    """Search once and return every panel."""
    scope: AccessScope = around["scope"]
    # What is outside the scope is left out anyway, so a slug from someone else's address does no harm here.
    own = {inclusion.connection.slug for inclusion in scope.included}
    without = tuple(slug for slug in asked.without if slug in own)
    request = SearchRequest(
        text=asked.text or "",
        preset=asked.preset,
        draft=asked.draft,
        narrowing=ScopeRequest(exclude=without),
        reveal_excluded=reveal,
    )
    outcome = run_search(request, principal=principal)
    panels = result_panels(
        outcome,
        labels=chunk_labels(outcome),
        stem_in=_stem_in,
        answer=_answer(outcome, run_as=around["run_as"]) if asked.tab == "answer" else None,
    )
    return {"panels": panels, "announcement": panels.announcement}


def _stem_in(language: str) -> Stem:
    """Return the stemmer of a connection's language; of the installation's where it names none."""
    return stemmer(language or settings.CORECUBE_TEXT_SEARCH_CONFIG)


def _answer(outcome: SearchOutcome, *, run_as: str) -> AnswerPanel:
    """Return the answer. It takes longer than the search itself, so only the tab that shows it asks for it."""
    return answer_panel(outcome, answer_provider(), address=partial(document_url, run_as=run_as))


def _form(viewer: User, asked: Asked) -> dict[str, Any]:
    """Return what the form above the results offers; only an admin can choose a person or the draft."""
    people = User.objects.filter(is_active=True).order_by("username") if viewer.is_admin else ()
    drafts = PresetVersion.objects.filter(status=PresetVersion.Status.DRAFT)
    return {
        "offers_draft": viewer.is_admin and (asked.draft or drafts.exists()),
        "presets": PRESETS.values(),
        "people": people,
        "longest_query": settings.CORECUBE_MAX_QUERY_CHARACTERS,
    }


def failure_title(error: CoreCubeError) -> str:
    """Return a heading for an error, from its code: "Query too long"."""
    return error.code.replace("_", " ").capitalize()
