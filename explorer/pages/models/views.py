"""Models and embedding indexes, for admins."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from explorer.components.forms import ConsoleForm
from explorer.pages.health.panels import size
from explorer.pages.models import panels
from explorer.viewer import admin_action, admin_page, errors_shown, viewer_of, wants_fragment
from retrieval.encoders.manifest import local_models
from retrieval.encoders.model_table import MODEL_TABLE
from retrieval.index import active
from retrieval.index.embedding_index import all_indexes, hnsw_bytes, progress
from retrieval.index.scans import MAX_OVERSAMPLE, ScanChoice
from retrieval.ingest import indexes as services
from retrieval.ingest.claims import alive_since
from retrieval.ingest.versions import ingest_version, older_documents
from retrieval.models import EmbeddingIndex
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.presets.corecube.config import CorecubeConfig
from retrieval.search import runtime
from retrieval.search.configuration import configuration_of

_MAX_DIMENSIONS: Final = 4000  #: As in the settings: the limit of an index.
_MODES: Final = (
    ("", "Default"),
    (EmbeddingIndex.Mode.CHUNK_FIRST, "Each chunk separately"),
    (EmbeddingIndex.Mode.LATE, "Late chunking"),
)
_SCANS: Final = (
    (EmbeddingIndex.Scan.HALFVEC, "Full vectors"),
    (EmbeddingIndex.Scan.INT8, "8-bit quantization with rescoring"),
    (EmbeddingIndex.Scan.BINARY, "Binary quantization with rescoring"),
    (EmbeddingIndex.Scan.PREFIX, "Truncated vectors with rescoring"),
)
_NEXT: Final = "next"


def _model_choices() -> list[tuple[str, str]]:
    local = [it.name for it in local_models(settings.CORECUBE_MODELS_DIR) if it.makes_embeddings]
    following = settings.CORECUBE_NEXT_EMBEDDER
    service = [(_NEXT, f"{following['model']} at {following['kind']} (next)")] if following else []
    absent = [(name, f"{name} (not installed)") for name in MODEL_TABLE if name not in local]
    return [*((name, name) for name in local), *service, *absent]


class NewIndexForm(ConsoleForm):
    """A second embedding index."""

    model = forms.ChoiceField(choices=_model_choices)
    dimensions = forms.IntegerField(required=False, min_value=1, max_value=_MAX_DIMENSIONS)
    mode = forms.ChoiceField(required=False, choices=_MODES)
    scan = forms.ChoiceField(required=False, choices=_SCANS)
    scan_dimensions = forms.IntegerField(required=False, min_value=1, max_value=_MAX_DIMENSIONS)
    oversample = forms.FloatField(required=False, min_value=1, max_value=MAX_OVERSAMPLE)

    @property
    def scan_choice(self) -> ScanChoice:
        """The search precision; only for a valid form."""
        values = self.cleaned_data
        scan = values["scan"] or EmbeddingIndex.Scan.HALFVEC
        return ScanChoice(scan, values["scan_dimensions"] or 0, values["oversample"] or 0.0)


@admin_page("GET")
def models(request: HtmxHttpRequest) -> HttpResponse:
    """Show the models and indexes; the page polls while an index is being built."""
    if wants_fragment(request):
        return render(request, "explorer/models/_indexes_fragment.html", _indexes())
    return _page(request, NewIndexForm(), 200)


@admin_action
def start_index(request: HtmxHttpRequest) -> HttpResponse:
    """Create a second index, which a worker builds."""
    form = NewIndexForm(request.POST)
    if not form.is_valid():
        return _page(request, form, 422)
    values = form.cleaned_data
    try:
        choice = services.chosen(
            model="" if values["model"] == _NEXT else values["model"],
            dim=values["dimensions"] or 0,
            next_service=values["model"] == _NEXT,
        )
        row = services.start_index(choice, actor=viewer_of(request), mode=values["mode"], scan=form.scan_choice)
    except CoreCubeError as error:
        form.add_error(None, str(error))
        return _page(request, form, 409)
    messages.success(request, f"Index {row.pk} was created. Searches do not use it until you switch to it.")
    return redirect("explorer:models")


@admin_action
def build_index(request: HtmxHttpRequest, number: int) -> HttpResponse:
    """Resume a stopped build."""
    row = get_object_or_404(EmbeddingIndex, pk=number)
    build = partial(services.build_again, row, actor=viewer_of(request))
    return _done(request, build, message=f"A worker resumes building index {number}.")


@admin_page("GET", "POST")
def switch_index(request: HtmxHttpRequest, number: int) -> HttpResponse:
    """Confirm and, by a POST, switch searches to another index."""
    row = _inactive(number)
    if request.method == "GET":
        return _confirm(request, row, action="switch")
    switch = partial(services.switch_to, row, actor=viewer_of(request))
    return _done(request, switch, message=f"Searches now use index {number} with {row.model}.")


@admin_page("GET", "POST")
def drop_index(request: HtmxHttpRequest, number: int) -> HttpResponse:
    """Confirm and, by a POST, delete an index; a worker removes its vectors."""
    row = _inactive(number)
    if request.method == "GET":
        return _confirm(request, row, action="drop")
    drop = partial(services.drop, row, actor=viewer_of(request), queue=True)
    return _done(request, drop, message=f"Index {number} was deleted.")


def _done(request: HtmxHttpRequest, action: Callable[[], object], *, message: str) -> HttpResponse:
    """Run an action, show its message or error, and redirect to the models."""
    with errors_shown(request):
        action()
        messages.success(request, message)
    return redirect("explorer:models")


def _inactive(number: int) -> EmbeddingIndex:
    """Return an index that is not active; raise Http404."""
    row = get_object_or_404(EmbeddingIndex, pk=number)
    if row.status == EmbeddingIndex.Status.ACTIVE:
        raise Http404
    return row


def _confirm(request: HtmxHttpRequest, row: EmbeddingIndex, *, action: str) -> HttpResponse:
    active = EmbeddingIndex.objects.filter(status=EmbeddingIndex.Status.ACTIVE).first()
    context = {"row": _row(row, hnsw_bytes([row])[row.pk]), "active": active, "action": action}
    return render(request, "explorer/models/index_confirm.html", context)


def _page(request: HtmxHttpRequest, form: NewIndexForm, status: int) -> HttpResponse:
    found = list(local_models(settings.CORECUBE_MODELS_DIR))
    context = {
        "cards": _cards(),
        "form": form,
        "local": [(it, size(it.bytes) if it.bytes else "") for it in found],
        "listed": list(panels.listed_models(found)),
        "ingest_version": ingest_version(),
        "older": older_documents(),
        **_indexes(),
    }
    return render(request, "explorer/models/models.html", context, status=status)


def _indexes() -> dict[str, Any]:
    rows = all_indexes()
    sizes = hnsw_bytes(rows)
    shown = [_row(row, sizes[row.pk]) for row in rows]
    return {
        "indexes": shown,
        "is_open": any(row["is_building"] for row in shown),
        "can_start": bool(rows) and all(row.status != EmbeddingIndex.Status.BUILDING for row in rows),
        "announcement": panels.announcement(shown),
    }


def _row(row: EmbeddingIndex, size_of_hnsw: int) -> dict[str, Any]:
    return panels.index_row(row, progress(row), hnsw_bytes=size_of_hnsw, now=timezone.now(), alive=alive_since())


def _cards() -> list[panels.ModelCard]:
    """Return the models in use; an unavailable one shows its error."""
    cards = []
    try:
        cards.append(panels.encoder_card(active.encoder()))
    except CoreCubeError as error:
        cards.append(panels.ModelCard("Embedding model", settings.CORECUBE_MODEL, (), str(error)))
    try:
        config = configuration_of(preset_named(DEFAULT_PRESET)).config
        candidates = config.rerank.candidates if isinstance(config, CorecubeConfig) else 0
        cards.append(panels.reranker_card(runtime.reranker(), candidates=candidates))
    except CoreCubeError as error:
        cards.append(panels.ModelCard("Reranker", settings.CORECUBE_RERANKER, (), str(error)))
    return cards
