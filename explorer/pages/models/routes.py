"""The routes of the helix router with their examples, and a test of a question, for admins."""

from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from corecube.http import HtmxHttpRequest
from corecube.sanitise import storable
from explorer.components.bars import percent
from explorer.viewer import admin_action, admin_page, errors_shown, viewer_of
from retrieval.errors import EncoderError, ModelMissingError
from retrieval.models import RouteExample
from retrieval.presets.catalog import preset_named
from retrieval.presets.helix.config import HelixConfig
from retrieval.presets.helix.pipeline import local_router
from retrieval.presets.helix.route_examples import MAX_CHARACTERS, add_example, delete_example
from retrieval.presets.helix.router.routes import ROUTES, SEARCH_ROUTE, SKIP_ROUTES, shipped_examples
from retrieval.search import runtime
from retrieval.search.configuration import configuration_of

_EXAMPLES_SHOWN: Final = 3
_PURPOSES: Final = {
    **dict.fromkeys(SKIP_ROUTES, "No search"),
    SEARCH_ROUTE: "Search, despite similarity to a skipped route",
}


@dataclass(frozen=True, slots=True)
class _TrialPanel:
    verdict: str
    similarities: tuple[tuple[str, str, float], ...] = ()  #: A route's label, its cosine, and percent of the bar.


def _route_panels() -> tuple[dict[str, Any], ...]:
    added: dict[str, list[RouteExample]] = {}
    for example in RouteExample.objects.order_by("pk"):
        added.setdefault(example.route, []).append(example)
    shipped = shipped_examples()
    return tuple(
        {
            "name": route,
            "label": _route_label(route),
            "purpose": _PURPOSES.get(route, "Search with the ranking weights of the route"),
            "shown": tuple(shipped.get(route, ())[:_EXAMPLES_SHOWN]),
            "more": tuple(shipped.get(route, ())[_EXAMPLES_SHOWN:]),
            "added": tuple(added.get(route, ())),
        }
        for route in map(str, ROUTES)
    )


def _route_label(route: str) -> str:
    return "Other (no search)" if route == "skip" else route.capitalize()


def _trial_panel(question: str) -> _TrialPanel:
    """Return the routing of a question with the live settings."""
    try:
        tools = runtime.resources()
        router, encoder = local_router(tools)(), tools.local_encoder
        vector = encoder.encode_query(question) if encoder else None
    except (ModelMissingError, EncoderError) as error:
        return _TrialPanel(str(error))
    if router is None or vector is None:
        return _TrialPanel("The routes are not trained yet. Until then, every question is searched.")
    found = router.likeness(vector)
    bars = tuple(
        (_route_label(route), f"{cosine:.2f}", round(percent(cosine, 1.0), 1))
        for route, cosine in found.by_route.items()
    )
    config = configuration_of(preset_named("helix")).config
    if not isinstance(config, HelixConfig):
        return _TrialPanel("", bars)
    if skip := found.skip(minimum=config.route.skip_from, margin=config.route.skip_margin):
        return _TrialPanel(f"No search: the question matches the route {skip}.", bars)
    memory_type = found.memory_type(minimum=config.route.type_from)
    weights = f"for {memory_type} items" if memory_type else "of each hit's type"
    return _TrialPanel(f"Search with the ranking weights {weights}.", bars)


@admin_page("GET", "POST")
def routes(request: HtmxHttpRequest) -> HttpResponse:
    """List the routes with their examples, and test the question in `q`; a POST adds an example."""
    if request.method == "POST":
        with errors_shown(request):
            add_example(request.POST.get("route", ""), request.POST.get("text", ""), actor=viewer_of(request))
        return redirect("explorer:routes")
    question = storable(request.GET.get("q", "")).strip()[:MAX_CHARACTERS]
    context = {
        "routes": _route_panels(),
        "question": question,
        "trial": _trial_panel(question) if question else None,
        "max_characters": MAX_CHARACTERS,
    }
    return render(request, "explorer/models/routes.html", context)


@admin_action
def remove_example(request: HtmxHttpRequest, number: int) -> HttpResponse:
    """Delete an example that was added."""
    delete_example(get_object_or_404(RouteExample, pk=number), actor=viewer_of(request))
    return redirect("explorer:routes")
