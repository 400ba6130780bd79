"""One question, every preset: what each finds, shares with the others, takes and packs."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Self

from django.conf import settings
from django.db.models import Sum
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
from explorer.components.scope import scope_chips
from explorer.pages.explorer.views import failure_title, left_out
from explorer.pages.side_by_side.panels import SideBySidePanel, side_by_side_panel
from explorer.pages.side_by_side.request import Asking, Attempt, ask_each, usable_presets
from explorer.viewer import comes_whole, principal_for, signed_in, viewer_of, wants_fragment
from retrieval.engine.stored_filter import read_filter
from retrieval.models import Usage
from retrieval.search.request import checked_query

logger = logging.getLogger(__name__)

_SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """What the page's address asks for."""

    #: None where nothing was asked yet.
    text: str | None
    run_as: str
    #: Slugs of the connections to leave out.
    without: tuple[str, ...]
    #: What is left of the documents in scope, as `retrieval.engine.stored_filter` writes it; empty for all.
    filter: str
    #: Whether the page is to come with its results, which otherwise follow it.
    whole: bool

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Return what a query string asks for."""
        return cls(
            text=query.get("q"),
            run_as=query.get("as", ""),
            without=left_out(query),
            filter=query.get("filter", ""),
            whole=query.get("whole") == "1",
        )


@require_GET
@signed_in
@never_cache
@vary_on_headers("HX-Request")
def side_by_side(request: HtmxHttpRequest) -> HttpResponse:
    """Show every preset's answer to one question beside the others'; a page comes first, and they follow it."""
    viewer, asked = viewer_of(request), Asked.read(request.GET)
    fragment = wants_fragment(request)
    searches = comes_whole(request, whole=asked.whole, run_as=asked.run_as)
    context, status = _page(viewer, asked, searches=searches)
    context |= _form(viewer)
    template = (
        "explorer/side_by_side/_side_by_side_fragment.html" if fragment else "explorer/side_by_side/side_by_side.html"
    )
    return render(request, template, {**context, "section": "side_by_side"}, status=status)


def _page(viewer: User, asked: Asked, *, searches: bool) -> tuple[dict[str, Any], int]:
    """Return the context of the results and the status to answer with; unless it searches, the results are awaited."""
    context: dict[str, Any] = {"asked": asked, "run_as": "", "announcement": ""}
    try:
        principal = principal_for(viewer, asked.run_as)
        scope = scope_for(principal)
        context |= _around(viewer, principal, scope, asked)
        if asked.text is None:
            return context, 200
        if not searches:
            checked_query(asked.text)
            return context | {"is_loading": True}, 200
        panel, status = _sides(viewer, principal, scope, asked)
        return context | {"sides": panel, "announcement": panel.announcement}, status
    except CoreCubeError as error:
        if error.status >= _SERVER_ERROR:
            logger.exception("side_by_side.failed code=%s", error.code)
        failure = {"title": failure_title(error), "message": str(error)}
        return {"principal": Principal(viewer), **context, "failure": failure, "announcement": str(error)}, error.status


def _around(viewer: User, principal: Principal, scope: AccessScope, asked: Asked) -> dict[str, Any]:
    return {
        "principal": principal,
        "run_as": "" if principal.user == viewer else principal.user.username,
        "chips": scope_chips(scope, asked.without),
        "filter_words": filter_words(read_filter(asked.filter)),
        "presets": usable_presets(principal),
    }


def _sides(viewer: User, principal: Principal, scope: AccessScope, asked: Asked) -> tuple[SideBySidePanel, int]:
    """Return the presets and the status: that of the first failure where none of them found anything out.

    Raises EmptyQueryError and QueryTooLongError, which would be every preset's.
    """
    own = {inclusion.connection.slug for inclusion in scope.included}
    asking = Asking(
        text=checked_query(asked.text or ""),
        narrowing=ScopeRequest(exclude=tuple(slug for slug in asked.without if slug in own)),
        limits=read_filter(asked.filter),
    )
    attempts = ask_each(asking, principal)
    panel = side_by_side_panel(attempts, costs=_costs(attempts) if viewer.is_admin else None)
    failures = [attempt.error.status for attempt in attempts if attempt.error]
    return panel, failures[0] if failures and not panel.names else 200


def _costs(attempts: Sequence[Attempt]) -> dict[str, Decimal]:
    """Return what the language models of each search cost, by preset; answers that were of no use cost too."""
    names = {it.outcome.id: it.preset.name for it in attempts if it.outcome}
    used = Usage.objects.filter(record__in=names).order_by().values_list("record").annotate(Sum("cost"))
    return {names[record]: cost for record, cost in used}


def _form(viewer: User) -> dict[str, Any]:
    """Return what the form offers; only an admin can choose a person."""
    return {
        "people": User.objects.filter(is_active=True).order_by("username") if viewer.is_admin else (),
        "max_query_length": settings.CORECUBE_MAX_QUERY_CHARACTERS,
    }
