"""Warming up a process in the background: models, router, disk cache and pipelines, so that the first search is fast.

A rehearsal searches each preset for a few document titles, in the widest scope of the first users. Nothing is stored or
shown.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from threading import Thread
from time import perf_counter
from typing import Final

from django.conf import settings
from django.db import Error, close_old_connections
from django.utils import timezone

from corecube import process
from corecube.access import Principal, scope_for
from corecube.errors import CoreCubeError
from corecube.models import User
from corecube.scope import AccessScope
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import SearchState
from retrieval.index import active
from retrieval.index.warming import walk, warm_relations
from retrieval.llm.clients import stored_models
from retrieval.models import Document
from retrieval.presets.catalog import TUNED
from retrieval.presets.helix.pipeline import local_router
from retrieval.search import runtime
from retrieval.search.configuration import configuration_of
from retrieval.stages.resources import Resources

logger = logging.getLogger(__name__)

_REHEARSALS: Final = 3
_TOP_K: Final = 10
_FIRST_USERS: Final = 20  #: The first admin is among them.


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the warm-up; when it fails, the first search does it."""

    name: str
    seconds: float
    outcome: str = "ok"  #: "ok", what was done, or the name of the error.


def begin() -> Thread | None:
    """Warm up in a new thread and return it; None where the settings switch it off."""
    if not settings.CORECUBE_WARM_UP:
        return None
    thread = Thread(target=_in_thread, name="warm-up", daemon=True)
    thread.start()
    return thread


def warm_up(*, tools: Resources | None = None) -> tuple[Step, ...]:
    """Load the model, the router, the index on disk, every preset's resources and the client of language models.

    The model's cosine scale is measured. A failed step is logged and deferred to the first search. `tools` replace the
    installation's resources.
    """
    steps: tuple[tuple[str, Callable[[Resources | None], object]], ...] = (
        ("model", _open_model),
        ("router", _open_router),
        ("disk", lambda it: warm_relations((it or runtime.resources()).index)),
        ("walk", _walk),
        ("rehearsal", _rehearse),
        ("language models", _load_client),
    )
    return tuple(_step(name, partial(work, tools)) for name, work in steps)


def _in_thread() -> None:
    try:
        warm_up()
        process.exclude_loaded_from_collection()
    finally:
        close_old_connections()


def _step(name: str, work: Callable[[], object]) -> Step:
    started = perf_counter()
    try:
        outcome = str(work() or "ok")
    except (CoreCubeError, Error, OSError) as error:
        # Only its name: a message may contain document text. A new installation has no index yet, for instance.
        outcome = type(error).__name__
        logger.info("warm_up.left_out step=%s error=%s", name, outcome)
    step = Step(name, perf_counter() - started, outcome)
    logger.info("warm_up.step name=%s seconds=%.2f outcome=%s", name, step.seconds, outcome)
    return step


def _open_model(tools: Resources | None) -> None:
    encoder = tools.encoder if tools else active.encoder()
    encoder.encode_query("warm")
    runtime.cosine_scales.measured(encoder)


def _open_router(tools: Resources | None) -> str:
    is_open = local_router(tools)() is not None if tools else runtime.open_router()
    return "ok" if is_open else "deferred to the first search"


def _walk(tools: Resources | None) -> str:
    scope = _widest_scope()
    return f"{walk((tools or runtime.resources()).index, scope=scope) if scope else 0} walks"


def _rehearse(tools: Resources | None) -> str:
    scope = _widest_scope()
    if scope is None:
        return "no user has access"
    documents = Document.objects.in_scope(scope).exclude(title="").order_by("pk").only("title")
    titles = [document.title for document in documents[:_REHEARSALS]]
    forgetful = replace(tools or runtime.resources(), query_cache=None)
    for preset in TUNED.values():
        config = configuration_of(preset).config
        for title in titles:
            state = SearchState(
                query=read_query(title, characters=config.query.retrieval_characters),
                scope=scope,
                deadline=Deadline.after(config.deadline_ms / 1000),
                now=timezone.now(),
                top_k=_TOP_K,
            )
            preset.build(config, forgetful).run(state)
    return f"{len(titles)} searches with {len(TUNED)} presets"


def _load_client(_: Resources | None) -> str:
    """Load the SDK that calls language models, where one is enabled."""
    if not any(model.is_enabled for model in stored_models()):
        return "none is enabled"
    import_module("openai")
    return "ok"


def _widest_scope() -> AccessScope | None:
    users = User.objects.filter(is_active=True).order_by("pk")[:_FIRST_USERS]
    scopes = (scope_for(Principal(user)) for user in users)
    widest = max(scopes, key=lambda scope: len(scope.connection_ids), default=None)
    return widest if widest and widest.connection_ids else None
