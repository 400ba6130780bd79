"""The search of the console, as a page, and as the results of the dialog that every page has."""

from typing import Final

from django.http import HttpResponse

from corecube.http import HtmxHttpRequest
from corecube.sanitise import storable
from explorer.pages.find.finders import asking, find
from explorer.viewer import render_page, user_page, viewer_of

_MAX_CHARACTERS: Final = 100


@user_page("GET", varies=True)
def find_by_name(request: HtmxHttpRequest) -> HttpResponse:
    """Show what the viewer may open by that name."""
    text = storable(request.GET.get("name", "")).strip()[:_MAX_CHARACTERS]
    kinds = find(viewer_of(request), text)
    context = {"text": text, "kinds": (*kinds, *asking(text)), "count": sum(len(kind.rows) for kind in kinds)}
    return render_page(request, "explorer/find/find.html", "explorer/find/_found.html", context)
