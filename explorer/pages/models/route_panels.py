"""The router's routes as their page shows them."""

from dataclasses import dataclass
from typing import Final

from explorer.components.bars import percent
from retrieval.errors import EncoderError, ModelMissingError
from retrieval.models import RouteExample
from retrieval.presets.catalog import preset_named
from retrieval.presets.helix.config import HelixConfig
from retrieval.presets.helix.pipeline import local_router
from retrieval.presets.helix.router.routes import ROUTES, SEARCH_ROUTE, SKIP_ROUTES, shipped_examples
from retrieval.search import runtime
from retrieval.search.configuration import configuration_of

_SHIPPED_SHOWN: Final = 3
_PURPOSES: Final = {
    **dict.fromkeys(SKIP_ROUTES, "Nothing is searched"),
    SEARCH_ROUTE: "Is searched, though it looks like one that is not",
}


@dataclass(frozen=True, slots=True)
class Added:
    """An example that can be deleted."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class RoutePanel:
    """A route with its examples."""

    name: str
    label: str
    purpose: str
    #: The first of the shipped examples, and all the others.
    shown: tuple[str, ...]
    more: tuple[str, ...]
    added: tuple[Added, ...]


@dataclass(frozen=True, slots=True)
class Likeness:
    """How like a route a question is."""

    label: str
    cosine: str
    #: Percent of the whole bar.
    width: float


@dataclass(frozen=True, slots=True)
class TriedPanel:
    """What the router makes of a question."""

    #: One sentence.
    verdict: str
    likeness: tuple[Likeness, ...] = ()


def route_panels() -> tuple[RoutePanel, ...]:
    """Return every route with its examples."""
    added: dict[str, list[Added]] = {}
    for example in RouteExample.objects.order_by("pk"):
        added.setdefault(example.route, []).append(Added(example.pk, example.text))
    shipped = shipped_examples()
    return tuple(
        RoutePanel(
            route,
            route_label(route),
            _PURPOSES.get(route, "Its ranking weights serve"),
            tuple(shipped.get(route, ())[:_SHIPPED_SHOWN]),
            tuple(shipped.get(route, ())[_SHIPPED_SHOWN:]),
            tuple(added.get(route, ())),
        )
        for route in map(str, ROUTES)
    )


def route_label(route: str) -> str:
    """Return a route as a heading."""
    return "Other skips" if route == "skip" else route.capitalize()


def tried_panel(question: str) -> TriedPanel:
    """Return what the router makes of a question, with the live numbers."""
    try:
        tools = runtime.resources()
        router, encoder = local_router(tools)(), tools.local_encoder
        vector = encoder.encode_query(question) if encoder else None
    except (ModelMissingError, EncoderError) as error:
        return TriedPanel(str(error))
    if router is None or vector is None:
        return TriedPanel("The routes are not trained yet; until they are, everything is searched.")
    found = router.likeness(vector)
    bars = tuple(
        Likeness(route_label(route), f"{cosine:.2f}", round(percent(cosine, 1.0), 1))
        for route, cosine in found.by_route.items()
    )
    config = configuration_of(preset_named("helix")).config
    if not isinstance(config, HelixConfig):
        return TriedPanel("", bars)
    if skip := found.skip(minimum=config.route.skip_from, margin=config.route.skip_margin):
        return TriedPanel(f"Nothing would be searched: it is like {skip}.", bars)
    memory_type = found.memory_type(minimum=config.route.type_from)
    rest = f"with the weights of {memory_type} items" if memory_type else "each hit with the weights of its own type"
    return TriedPanel(f"It would be searched, {rest}.", bars)
