"""One query with every preset, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from django.conf import settings
from django.db.models import Sum
from django.http import HttpResponse, QueryDict

from corecube.access import Principal, scope_for
from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.models import User
from corecube.scope import AccessScope
from explorer.components.scope import scope_chips
from explorer.components.search_page import excluded_slugs, excluding, failed, filter_words, run_as_name
from explorer.components.user_menu import user_menu
from explorer.pages.side_by_side.panels import Attempt, ask_each, side_by_side_panel, usable_presets
from explorer.viewer import includes_results, principal_for, render_page, user_page, viewer_of
from retrieval.engine.stored_filter import read_filter
from retrieval.models import SearchRecord, Usage
from retrieval.search.request import SearchRequest, checked_query


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters of the page's address."""

    text: str | None  #: None without a query.
    run_as: str
    without: tuple[str, ...]  #: Slugs of excluded connections.
    filter: str  #: The filter, as `retrieval.engine.stored_filter` writes it; empty for none.
    references: bool  #: Whether the presets' reference versions search too.
    whole: bool  #: Whether the page includes its results instead of loading them later.

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Return the parameters of a query string."""
        return cls(
            text=query.get("q"),
            run_as=query.get("as", ""),
            without=excluded_slugs(query),
            filter=query.get("filter", ""),
            references=query.get("references") == "1",
            whole=query.get("whole") == "1",
        )


@user_page("GET", varies=True)
def side_by_side(request: HtmxHttpRequest) -> HttpResponse:
    """Show the results of every preset for one query side by side; the page loads first, and then its results."""
    viewer, asked = viewer_of(request), Asked.read(request.GET)
    searches = includes_results(request, whole=asked.whole, run_as=asked.run_as)
    context, status = _page(viewer, asked, searches=searches)
    context |= {
        "user_menu": user_menu(viewer, asked.run_as),
        "max_query_length": settings.CORECUBE_MAX_QUERY_CHARACTERS,
    }
    fragment = "explorer/side_by_side/_side_by_side_fragment.html"
    return render_page(request, "explorer/side_by_side/side_by_side.html", fragment, context, status=status)


def _page(viewer: User, asked: Asked, *, searches: bool) -> tuple[dict[str, Any], int]:
    """Return the context of the results and the status; unless it searches, the page loads the results later."""
    context: dict[str, Any] = {"asked": asked, "principal": Principal(viewer), "run_as": "", "announcement": ""}
    try:
        principal = principal_for(viewer, asked.run_as)
        scope = scope_for(principal)
        context |= {
            "principal": principal,
            "run_as": run_as_name(principal),
            "chips": scope_chips(scope, asked.without),
            "filter_words": filter_words(read_filter(asked.filter)),
            "presets": usable_presets(principal, references=asked.references),
        }
        if asked.text is None:
            return context, 200
        if not searches:
            checked_query(asked.text)
            return context | {"is_loading": True}, 200
        panel, status = _sides(viewer, principal, scope, asked)
        return context | {"sides": panel, "announcement": panel["announcement"]}, status
    except CoreCubeError as error:
        return failed(error, "side_by_side", context)


def _sides(viewer: User, principal: Principal, scope: AccessScope, asked: Asked) -> tuple[dict[str, Any], int]:
    """Return the presets and the status: that of the first failure if all of them failed.

    Raises EmptyQueryError and QueryTooLongError, which would be the same for every preset.
    """
    limits = read_filter(asked.filter)
    asking = SearchRequest(
        text=checked_query(asked.text or ""),
        top_k=None,
        narrowing=excluding(asked.without, scope),
        filter=limits.filter,
        conditions=limits.conditions,
        surface=SearchRecord.Surface.EXPLORER,
    )
    attempts = ask_each(asking, principal, references=asked.references)
    panel = side_by_side_panel(attempts, costs=_costs(attempts) if viewer.is_admin else None)
    failures = [attempt.error.status for attempt in attempts if attempt.error]
    return panel, failures[0] if failures and not panel["names"] else 200


def _costs(attempts: Sequence[Attempt]) -> dict[str, Decimal]:
    """Return the language model costs of each search, by preset, including unusable answers."""
    names = {it.outcome.id: it.preset.name for it in attempts if it.outcome}
    used = Usage.objects.filter(record__in=names).order_by().values_list("record").annotate(Sum("cost"))
    return {names[record]: cost for record, cost in used}
