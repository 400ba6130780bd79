"""The query log: the list of searches, and one search in detail."""

from typing import Final
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.http import HtmxHttpRequest
from corecube.models import User
from explorer.components.choices import with_chosen
from explorer.components.sections import section_label
from explorer.pages.evaluation.judge import case_context
from explorer.pages.log.filters import SINCE, LogFilter, Place
from explorer.pages.log.panels import badges_of, log_flags, log_matches, log_page, log_row, surface_label, with_facts
from explorer.pages.log.record import find_chunks, record_panels
from explorer.pages.log.replay import config_then, replay, since_then
from explorer.viewer import render_page, user_page, viewer_of, wants_fragment
from retrieval.models import SearchRecord
from retrieval.presets.catalog import PRESETS

_SINCE_LABELS: Final = {"hour": "Last hour", "day": "Last 24 hours", "week": "Last 7 days", "month": "Last 30 days"}


@user_page("GET", varies=True)
def log(request: HtmxHttpRequest) -> HttpResponse:
    """List the searches, newest first: all for an admin, anyone else's own."""
    viewer, now, wanted = viewer_of(request), timezone.now(), LogFilter.read(request.GET)
    matches = log_matches(SearchRecord.objects.visible_to(viewer), wanted, now)
    page = log_page(
        matches,
        before=Place.read(request.GET.get("before", "")),
        after=Place.read(request.GET.get("after", "")),
        now=now,
    )
    # Only an admin can choose a user; a fragment has no form.
    offers_people = viewer.is_admin and not wants_fragment(request)
    names = User.objects.order_by("username").values_list("username", flat=True) if offers_people else ()
    context = {
        "section": "log",
        "shows_people": viewer.is_admin,
        "wanted": wanted,
        "flags": list(log_flags(wanted, matches.counts)),
        "total": matches.counts["all"],
        "page": page,
        "presets": list(PRESETS),
        "surfaces": [(value, surface_label(value)) for value in SearchRecord.Surface.values],
        "sinces": [(word, _SINCE_LABELS[word]) for word in SINCE],
        "people": with_chosen(((name, name) for name in names), wanted.user) if viewer.is_admin else (),
    }
    return render_page(request, "explorer/log/log.html", "explorer/log/_log_fragment.html", context)


@user_page("GET")
def record(request: HtmxHttpRequest, record_id: UUID) -> HttpResponse:
    """Show one search: its query, stages and hits, and what changed since; this does not search."""
    viewer, now = viewer_of(request), timezone.now()
    found = get_object_or_404(with_facts(SearchRecord.objects.visible_to(viewer)), pk=record_id)
    scope = scope_for(Principal(viewer))
    chunks = find_chunks(found, scope, tells_gone=viewer.is_admin)
    context = {
        "section": "log",
        "record": found,
        "row": log_row(found, now),
        "badges": list(badges_of(found)),
        "section_named": section_label(named) if (named := found.trace.get("section", "")) else "",
        "asked": {"stage": request.GET.get("stage", "")},
        "panels": record_panels(found, chunks, config_then(found)),
        "since": since_then(found, scope),
        "replay": (again := replay(found, viewer)),
        "compare": f"{reverse('explorer:compare')}?a=log:{found.pk}" if again.address else "",
        **case_context(viewer, trace_id=found.pk, query=found.query),
    }
    return render(request, "explorer/log/record.html", context)
