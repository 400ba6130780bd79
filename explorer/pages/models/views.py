"""Models and embedding indexes, for admins."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from explorer.pages.health.panels import size
from explorer.pages.models.index_form import NewIndexForm
from explorer.pages.models.panels import (
    IndexRow,
    ModelCard,
    announcement,
    encoder_card,
    index_row,
    listed_models,
    reranker_card,
)
from explorer.viewer import admins_only, viewer_of, wants_fragment
from retrieval.encoders.local import local_models
from retrieval.encoders.model_table import MODEL_TABLE
from retrieval.index import active
from retrieval.index.embedding_index import hnsw_bytes, kept_indexes, progress
from retrieval.ingest import indexes as services
from retrieval.ingest.heartbeat import alive_since
from retrieval.models import EmbeddingIndex
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.presets.corecube.config import CorecubeConfig
from retrieval.search import runtime
from retrieval.search.configuration import configuration_of

_NEXT: Final = "next"


@require_GET
@admins_only
@never_cache
def models(request: HtmxHttpRequest) -> HttpResponse:
    """Show the models and the indexes; the page asks again for the indexes while one is being built."""
    if wants_fragment(request):
        return render(request, "explorer/models/_indexes_fragment.html", _indexes())
    return _page(request, NewIndexForm(**_choices()), 200)


@require_POST
@admins_only
def start_index(request: HtmxHttpRequest) -> HttpResponse:
    """Begin an index with another model beside the active one; a worker builds it."""
    form = NewIndexForm(request.POST, **_choices())
    if not form.is_valid():
        return _page(request, form, 422)
    wanted = form.cleaned_data
    try:
        choice = services.chosen(
            model="" if wanted["model"] == _NEXT else wanted["model"],
            dim=wanted["dimensions"] or 0,
            next_service=wanted["model"] == _NEXT,
        )
        row = services.start_index(choice, actor=viewer_of(request), mode=wanted["mode"], scan=form.scan_choice)
    except CoreCubeError as error:
        form.add_error(None, str(error))
        return _page(request, form, 409)
    messages.success(request, f"Index {row.pk} is begun. Searches stay as they are until you switch to it.")
    return redirect("explorer:models")


@require_POST
@admins_only
def build_index(request: HtmxHttpRequest, number: int) -> HttpResponse:
    """Let a worker go on with a building that stopped."""
    row = get_object_or_404(EmbeddingIndex, pk=number)
    build = partial(services.build_again, row, actor=viewer_of(request))
    return _done(request, build, said=f"A worker goes on with index {number}.")


@require_http_methods(["GET", "POST"])
@admins_only
@never_cache
def switch_index(request: HtmxHttpRequest, number: int) -> HttpResponse:
    """Ask before searches use another index; a POST does it."""
    row = _other(number)
    if request.method == "GET":
        return _confirm(request, row, action="switch")
    switch = partial(services.switch_to, row, actor=viewer_of(request))
    return _done(request, switch, said=f"Searches use index {number} with {row.model} from now on.")


@require_http_methods(["GET", "POST"])
@admins_only
@never_cache
def drop_index(request: HtmxHttpRequest, number: int) -> HttpResponse:
    """Ask before an index is deleted; a POST does it, and a worker clears its vectors away."""
    row = _other(number)
    if request.method == "GET":
        return _confirm(request, row, action="drop")
    drop = partial(services.drop, row, actor=viewer_of(request), queue=True)
    return _done(request, drop, said=f"Index {number} is deleted.")


def _done(request: HtmxHttpRequest, deed: Callable[[], object], *, said: str) -> HttpResponse:
    """Do it, say that it was done or why it cannot be, and go back to the models."""
    try:
        deed()
        messages.success(request, said)
    except CoreCubeError as error:
        messages.error(request, str(error))
    return redirect("explorer:models")


def _other(number: int) -> EmbeddingIndex:
    """Return an index that is not searched; the one that is has no page of its own."""
    row = get_object_or_404(EmbeddingIndex, pk=number)
    if row.status == EmbeddingIndex.Status.ACTIVE:
        raise Http404
    return row


def _confirm(request: HtmxHttpRequest, row: EmbeddingIndex, *, action: str) -> HttpResponse:
    active = EmbeddingIndex.objects.filter(status=EmbeddingIndex.Status.ACTIVE).first()
    context = {"section": "models", "row": _row(row, hnsw_bytes([row])[row.pk]), "active": active, "action": action}
    return render(request, "explorer/models/index_confirm.html", context)


def _page(request: HtmxHttpRequest, form: NewIndexForm, status: int) -> HttpResponse:
    found = list(local_models(settings.CORECUBE_MODELS_DIR))
    context = {
        "section": "models",
        "cards": _cards(),
        "form": form,
        "local": [(it, size(it.bytes) if it.bytes else "") for it in found],
        "listed": listed_models(found),
        **_indexes(),
    }
    return render(request, "explorer/models/models.html", context, status=status)


def _indexes() -> dict[str, Any]:
    rows = kept_indexes()
    sizes = hnsw_bytes(rows)
    shown = [_row(row, sizes[row.pk]) for row in rows]
    return {
        "indexes": shown,
        "is_open": any(row.is_building for row in shown),
        "can_start": len(shown) == 1,
        "announcement": announcement(shown),
    }


def _row(row: EmbeddingIndex, size_of_hnsw: int) -> IndexRow:
    return index_row(row, progress(row), hnsw_bytes=size_of_hnsw, now=timezone.now(), alive=alive_since())


def _cards() -> list[ModelCard]:
    """Return the models that searches use; one that cannot be had says why."""
    cards = []
    try:
        cards.append(encoder_card(active.encoder()))
    except CoreCubeError as error:
        cards.append(ModelCard("Embedding model", settings.CORECUBE_MODEL, (), str(error)))
    try:
        config = configuration_of(preset_named(DEFAULT_PRESET)).config
        candidates = config.rerank.candidates if isinstance(config, CorecubeConfig) else 0
        cards.append(reranker_card(runtime.reranker(), candidates=candidates))
    except CoreCubeError as error:
        cards.append(ModelCard("Reranker", settings.CORECUBE_RERANKER, (), str(error)))
    return cards


def _choices() -> dict[str, Any]:
    """Return what an index can be built with: the models on this machine, and the service that is next."""
    local = [it.name for it in local_models(settings.CORECUBE_MODELS_DIR) if it.makes_embeddings]
    following = settings.CORECUBE_NEXT_EMBEDDER
    listed = [name for name in MODEL_TABLE if name not in local]
    service = [(_NEXT, f"{following['model']} at {following['kind']} (next)")] if following else []
    absent = [(name, f"{name} (not on this machine)") for name in listed]
    return {"choices": [*((name, name) for name in local), *service, *absent]}
