"""Tokens and costs of language models, for admins."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from corecube.http import HtmxHttpRequest
from explorer import wording
from explorer.charts.usage import usage_chart
from explorer.pages.health.panels import Figure
from explorer.viewer import admin_page
from retrieval.operations.usage import Line, by_day, by_group, total, used_between

_RANGES: Final = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "1 year"}
_DEFAULT_RANGE: Final = "30"
_HEADINGS: Final = {"model": "By model", "user": "By user", "key": "By API key", "month": "By month"}
_NAMES: Final = {"model": "Model", "user": "User", "key": "API key", "month": "Month"}
_MAX_ROWS: Final = 50


def _usage_table(group: str, lines: Iterable[Line]) -> dict[str, Any]:
    rows = [(_name(group, line), line.sums, wording.money(line.sums.cost)) for line in lines]
    return {
        "id": group,
        "heading": _HEADINGS[group],
        "name": _NAMES[group],
        "rows": tuple(rows[:_MAX_ROWS]),
        "more": max(0, len(rows) - _MAX_ROWS),
    }


def _name(group: str, line: Line) -> str:
    """Return the name of a line; deleted users and models are marked."""
    names = line.names
    if group == "month":
        return f"{names['month']:%B %Y}"
    if group == "model":
        return f"{names['model_name']}{'' if names['language_model_id'] else ' (deleted)'}"
    if group == "key" and names["key_id"]:
        return f"{names['key__name']} ({names['key__prefix']}…), {names['user__username'] or 'a deleted user'}"
    if group == "key":
        return f"no key, {names['user__username'] or 'a deleted user'}"
    return str(names["user__username"] or "a deleted user")


@admin_page("GET")
def usage(request: HtmxHttpRequest) -> HttpResponse:
    """Show tokens and costs by day, model, user, key and month."""
    requested = request.GET.get("days", "")
    days = requested if requested in _RANGES else _DEFAULT_RANGE
    last: date = timezone.now().date()
    first = last - timedelta(days=int(days) - 1)
    found = used_between(first, last)
    sums = total(found)
    tables: list[dict[str, Any]] = [_usage_table(group, by_group(found, group)) for group in _NAMES]
    context = {
        "ranges": list(_RANGES.items()),
        "days": days,
        "figures": [
            Figure("Model calls", f"{sums.answers:,}"),
            Figure("Input tokens", f"{sums.prompt_tokens:,}"),
            Figure("Output tokens", f"{sums.completion_tokens:,}"),
            Figure("Cost", wording.money(sums.cost)),
        ],
        "chart": usage_chart(by_day(found), first=first, last=last),
        "tables": tables,
    }
    return render(request, "explorer/models/usage.html", context)
