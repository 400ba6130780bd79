"""The router's examples: those shipped and those that admins added, and the router that is trained with them."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
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
from retrieval.engine.ttl_cache import TtlCache
from retrieval.models import RouteExample
from retrieval.presets.helix.router.routes import ROUTES, Examples, Router, shipped_examples, version_of, with_more

MAX_CHARACTERS: Final = 300
#: Examples that admins can add; each takes some milliseconds of a process's first search.
MAX_ADDED: Final = 500
#: A training that failed is tried again after so long.
_AGAIN_SECONDS: Final = 60.0

#: Route and text of each.
Added = tuple[tuple[str, str], ...]
_Key = tuple[str, str, Added]


def added_examples() -> Added:
    """Return the examples that admins added, as they were within the last second."""
    return _added.get()


_added: Final = TtlCache(lambda: tuple(RouteExample.objects.order_by("pk").values_list("route", "text")))


def forget_examples() -> None:
    """Have this process read the added examples anew with the next search."""
    _added.forget()


def _changed() -> None:
    """Forget the examples now, and when the change is committed, as a search may read those of before until then."""
    forget_examples()
    transaction.on_commit(forget_examples)


def add_example(route: str, text: str, *, actor: User) -> RouteExample:
    """Add an example, or return it where it is there; raise InvalidRequestError."""
    text = " ".join(storable(text).split())
    if route not in ROUTES:
        raise InvalidRequestError(f"There is no route {route!r}; there are: {', '.join(ROUTES)}.")
    if not text or len(text) > MAX_CHARACTERS:
        raise InvalidRequestError(f"An example has 1 to {MAX_CHARACTERS} characters.")
    if text in shipped_examples().get(route, ()):
        raise InvalidRequestError("That example is shipped already.")
    with atomic_change():
        if RouteExample.objects.count() >= MAX_ADDED:
            raise InvalidRequestError(f"There are {MAX_ADDED} examples already; delete one first.")
        example, is_new = RouteExample.objects.get_or_create(route=route, text=text)
        if is_new:
            audit.record("route_example.added", actor=actor, subject=route, example=example.pk)
            _changed()
    return example


def delete_example(example: RouteExample, *, actor: User) -> None:
    """Delete an example that was added."""
    with transaction.atomic():
        audit.record("route_example.deleted", actor=actor, subject=example.route, example=example.pk)
        example.delete()
        _changed()


@dataclass(frozen=True, slots=True)
class Routers:
    """Routers by model and examples, trained once each, and again where that failed; for several threads."""

    clock: Callable[[], float] = monotonic
    #: When the training began, and what it gives.
    _trained: dict[_Key, tuple[float, Future[Router]]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, encoder: Encoder, added: Added, executor: Executor) -> Router | None:
        """Return the router of a model and its examples; None while the executor trains it, and when that failed."""
        key, now = (encoder.name, encoder.weights, added), self.clock()
        with self._lock:
            began, future = self._trained.get(key, (now, Future[Router]()))
            is_new = key not in self._trained or (_has_failed(future) and now - began >= _AGAIN_SECONDS)
            if is_new:
                self._trained.clear()
                _, future = self._trained[key] = (now, Future())
        if is_new:
            executor.submit(_train, future, encoder, added)
        return future.result() if future.done() and not _has_failed(future) else None

    def router_of(self, encoder: Encoder, executor: Executor) -> Callable[[], Router | None]:
        """Return what looks the examples up, with every search, and gives the router that they make."""
        return lambda: self.get(encoder, added_examples(), executor)


def _has_failed(future: "Future[Router]") -> bool:
    return future.done() and future.exception() is not None


def _train(future: "Future[Router]", encoder: Encoder, added: Added) -> None:
    try:
        future.set_result(trained_router(encoder, with_more(shipped_examples(), added)))
    except Exception as error:  # noqa: BLE001 -- a search goes on without a router
        future.set_exception(error)


def trained_router(encoder: Encoder, examples: Examples) -> Router:
    """Return the router of a model, whose vectors of the examples are those of questions; raise EncoderError."""
    vectors = {
        route: np.stack([encoder.encode_query(text) for text in texts]) for route, texts in examples.items() if texts
    }
    return Router.trained(vectors, version=version_of(examples))
