"""The router's examples, for admins: those shipped, those added, and what a question would be made of."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from corecube.sanitise import storable
from explorer.pages.models.route_panels import route_panels, tried_panel
from explorer.viewer import admins_only, viewer_of
from retrieval.models import RouteExample
from retrieval.presets.helix.route_examples import MAX_CHARACTERS, add_example, delete_example


@require_http_methods(["GET", "POST"])
@admins_only
@never_cache
def routes(request: HtmxHttpRequest) -> HttpResponse:
    """List the routes with their examples, and what the question in `q` is like; a POST adds an example."""
    if request.method == "POST":
        try:
            add_example(request.POST.get("route", ""), request.POST.get("text", ""), actor=viewer_of(request))
        except CoreCubeError as error:
            messages.error(request, str(error))
        return redirect("explorer:routes")
    question = storable(request.GET.get("q", "")).strip()[:MAX_CHARACTERS]
    context = {
        "section": "routes",
        "routes": route_panels(),
        "question": question,
        "tried": tried_panel(question) if question else None,
        "most_characters": MAX_CHARACTERS,
    }
    return render(request, "explorer/models/routes.html", context)


@require_POST
@admins_only
def remove_example(request: HtmxHttpRequest, number: int) -> HttpResponse:
    """Delete an example that was added."""
    delete_example(get_object_or_404(RouteExample, pk=number), actor=viewer_of(request))
    return redirect("explorer:routes")
