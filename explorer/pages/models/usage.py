"""What language models were used for and what it cost, for admins."""

from datetime import date, timedelta
from typing import Final

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from corecube.http import HtmxHttpRequest
from explorer.charts.usage import usage_chart
from explorer.pages.models.usage_panels import Table, usage_figures, usage_table
from explorer.viewer import admins_only
from retrieval.operations.usage import by_day, by_group, total, used_between

#: Days back from today, and what they are called.
_RANGES: Final = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "A year"}
_USUAL: Final = "30"
_TABLES: Final = ("model", "user", "key", "month")


@require_GET
@admins_only
@never_cache
def usage(request: HtmxHttpRequest) -> HttpResponse:
    """Show tokens and costs by day, model, user, key and month."""
    asked = request.GET.get("days", "")
    days = asked if asked in _RANGES else _USUAL
    last: date = timezone.now().date()
    first = last - timedelta(days=int(days) - 1)
    found = used_between(first, last)
    tables: list[Table] = [usage_table(group, by_group(found, group)) for group in _TABLES]
    context = {
        "section": "language_models",
        "ranges": list(_RANGES.items()),
        "days": days,
        "figures": usage_figures(total(found)),
        "chart": usage_chart(by_day(found), first=first, last=last),
        "tables": tables,
    }
    return render(request, "explorer/models/usage.html", context)
