"""The router's examples, shipped and added by admins, and the routers trained with them."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from time import monotonic
from typing import Final

import numpy as np
from django.db import transaction

from corecube import audit
from corecube.database import atomic_change
from corecube.errors import InvalidRequestError
from corecube.models import User
from corecube.sanitise import storable
from retrieval.encoders import Encoder
from retrieval.engine.caches import TtlCache
from retrieval.models import RouteExample
from retrieval.presets.helix.router.routes import ROUTES, Examples, Router, shipped_examples, version_of, with_more
from retrieval.stages.prefetch import settle

MAX_CHARACTERS: Final = 300
MAX_ADDED: Final = 500  #: Maximum number of added examples; each costs some milliseconds of a process's first search.
_AGAIN_SECONDS: Final = 60.0  #: Seconds before a failed training is retried.

Added = tuple[tuple[str, str], ...]  #: Route and text of each.
_Key = tuple[str, str, Added]


def added_examples() -> Added:
    """Return the examples that admins added, at most a second old."""
    return _added.get()


_added: Final = TtlCache(lambda: tuple(RouteExample.objects.order_by("pk").values_list("route", "text")))


def forget_examples() -> None:
    """Clear this process's cache of added examples."""
    _added.forget()


def _changed() -> None:
    """Clear the cache now and after the commit, since searches read the old examples until then."""
    forget_examples()
    transaction.on_commit(forget_examples)


def add_example(route: str, text: str, *, actor: User) -> RouteExample:
    """Add an example, or return the existing one; raise InvalidRequestError."""
    text = " ".join(storable(text).split())
    if route not in ROUTES:
        raise InvalidRequestError(f"Unknown route {route!r}. Available routes: {', '.join(ROUTES)}.")
    if not text or len(text) > MAX_CHARACTERS:
        raise InvalidRequestError(f"An example has 1 to {MAX_CHARACTERS} characters.")
    if text in shipped_examples().get(route, ()):
        raise InvalidRequestError("This example is already shipped.")
    with atomic_change():
        if RouteExample.objects.count() >= MAX_ADDED:
            raise InvalidRequestError(f"The limit of {MAX_ADDED} examples is reached; delete one first.")
        example, is_new = RouteExample.objects.get_or_create(route=route, text=text)
        if is_new:
            audit.record("route_example.added", actor=actor, subject=route, example=example.pk)
            _changed()
    return example


def delete_example(example: RouteExample, *, actor: User) -> None:
    """Delete an added example."""
    with transaction.atomic():
        audit.record("route_example.deleted", actor=actor, subject=example.route, example=example.pk)
        example.delete()
        _changed()


@dataclass(frozen=True, slots=True)
class Routers:
    """Routers by model and examples, trained once, and retried after a failure; thread-safe."""

    clock: Callable[[], float] = monotonic
    _trained: dict[_Key, tuple[float, Future[Router]]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, encoder: Encoder, added: Added, executor: Executor) -> Router | None:
        """Return the router of a model and its examples; None while it is trained, and after a failure."""
        key, now = (encoder.name, encoder.weights, added), self.clock()
        with self._lock:
            began, future = self._trained.get(key, (now, Future[Router]()))
            is_new = key not in self._trained or (_has_failed(future) and now - began >= _AGAIN_SECONDS)
            if is_new:
                self._trained.clear()
                _, future = self._trained[key] = (now, Future())
        if is_new:
            executor.submit(settle, future, partial(trained_router, encoder, with_more(shipped_examples(), added)))
        return future.result() if future.done() and not _has_failed(future) else None

    def router_of(self, encoder: Encoder, executor: Executor) -> Callable[[], Router | None]:
        """Return a function that reads the examples and returns their router."""
        return lambda: self.get(encoder, added_examples(), executor)


def _has_failed(future: "Future[Router]") -> bool:
    return future.done() and future.exception() is not None


def trained_router(encoder: Encoder, examples: Examples) -> Router:
    """Return the router of a model, with examples embedded as queries; raise EncoderError."""
    vectors = {
        route: np.stack([encoder.encode_query(text) for text in texts]) for route, texts in examples.items() if texts
    }
    return Router.trained(vectors, version=version_of(examples))
