"""Health, for admins: every part of the installation, and what the settings came to."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from corecube.door import door
from corecube.env import readings
from corecube.http import HtmxHttpRequest
from explorer.pages.health.load import load_panel
from explorer.pages.health.panels import health_rows, overall, setting_rows
from explorer.viewer import admins_only
from retrieval.operations.installation import installation


@require_GET
@admins_only
@never_cache
def health(request: HtmxHttpRequest) -> HttpResponse:
    """Show how each part is, the versions, and every setting with its origin."""
    found = installation()
    rows = health_rows(found, timezone.now())
    context = {
        "section": "health",
        "rows": rows,
        "overall": overall(rows),
        "load": load_panel(found.load, found.ingest, at_the_door=door.refused),
        "versions": found.versions,
        "settings_rows": list(setting_rows(readings())),
    }
    return render(request, "explorer/health/health.html", context)
