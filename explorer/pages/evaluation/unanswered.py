"""Unanswered questions, for admins: by topic, with the nearest documents and where an answer would be expected."""

from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.http import HtmxHttpRequest
from explorer.viewer import admin_page, viewer_of
from retrieval.models import SearchRecord
from retrieval.operations.unanswered import UnansweredTopic, unanswered

#: The periods, by their names in the query log: days, and how they are called.
_PERIODS: Final = {"day": (1, "24 hours"), "week": (7, "7 days"), "month": (30, "30 days")}
_MAX_TOPICS: Final = 30


@admin_page("GET")
def unanswered_questions(request: HtmxHttpRequest) -> HttpResponse:
    """Show the topics of refused questions and of those with low confidence, with documents of the viewer's scope."""
    since = name if (name := request.GET.get("since", "")) in _PERIODS else "month"
    begins = timezone.now() - timedelta(days=_PERIODS[since][0])
    scope = scope_for(Principal(viewer_of(request)))
    context = {
        "section": "unanswered",
        "periods": [(name, words) for name, (_, words) in _PERIODS.items()],
        "since": since,
        "rows": [(it, _log(it, since)) for it in unanswered(begins, scope=scope, limit=_MAX_TOPICS)],
        "has_questions": SearchRecord.objects.asked().filter(at__gte=begins).exists,
    }
    return render(request, "explorer/evaluation/unanswered.html", context)


def _log(it: UnansweredTopic, since: str) -> str:
    query = {"since": since, "flag": "unsure", **({"q": it.topic.term} if it.topic.term else {})}
    return f"{reverse('explorer:log')}?{urlencode(query)}"
