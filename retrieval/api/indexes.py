"""/api/v1/indexes: the embedding indexes, and the change from one model to another, for admins."""

from django.http import HttpRequest
from ninja import Router, Status

from corecube.api import principal_of
from corecube.errors import ConfigError, InvalidRequestError, NotFoundError, NotPermittedError
from corecube.models import User
from retrieval.api.index_schemas import IndexIn, IndexOut
from retrieval.api.managed import may_manage_presets
from retrieval.api.schemas import REFUSALS, ErrorOut
from retrieval.errors import ModelMissingError
from retrieval.index.embedding_index import kept_indexes, progress
from retrieval.index.scans import ScanChoice
from retrieval.ingest import indexes
from retrieval.models import EmbeddingIndex

router = Router(tags=["indexes"])

_REFUSALS = {**REFUSALS, 409: ErrorOut}


@router.get("/indexes", response={200: list[IndexOut], **REFUSALS}, summary="Embedding indexes")
def list_indexes(request: HttpRequest) -> list[IndexOut]:
    """Return the embedding indexes, the active one first. For admins, with a key that is not narrowed."""
    _admin(request)
    return [_shown(row) for row in kept_indexes()]


@router.post("/indexes", response={202: IndexOut, **_REFUSALS}, summary="Begin an embedding index")
def start_index(request: HttpRequest, body: IndexIn) -> Status[IndexOut]:
    """Begin an index beside the active one; a worker builds it. For admins."""
    actor = _admin(request)
    try:
        choice = indexes.chosen(model=body.model, dim=body.dimensions, next_service=body.next)
        scan = ScanChoice(body.scan, body.scan_dimensions, body.oversample)
        row = indexes.start_index(choice, actor=actor, mode=body.mode, scan=scan)
    except ConfigError as error:
        raise InvalidRequestError(str(error)) from error
    except ModelMissingError as error:
        if not body.model:
            raise
        raise InvalidRequestError(str(error)) from error
    return Status(202, _shown(row))


@router.post("/indexes/rollback", response={200: IndexOut, **_REFUSALS}, summary="Roll back")
def roll_back(request: HttpRequest) -> IndexOut:
    """Let searches use the previous index again. For admins."""
    return _shown(indexes.roll_back(actor=_admin(request)))


@router.post("/indexes/{number}/build", response={202: IndexOut, **_REFUSALS}, summary="Go on building")
def build_index(request: HttpRequest, number: int) -> Status[IndexOut]:
    """Let a worker go on with a building that stopped. For admins."""
    actor, row = _admin(request), _existing(number)
    indexes.build_again(row, actor=actor)
    return Status(202, _shown(row))


@router.post("/indexes/{number}/switch", response={200: IndexOut, **_REFUSALS}, summary="Switch to an index")
def switch_index(request: HttpRequest, number: int) -> IndexOut:
    """Let searches use a complete index from the next one on. For admins."""
    actor = _admin(request)
    return _shown(indexes.switch_to(_existing(number), actor=actor))


@router.post("/indexes/{number}/drop", response={204: None, **_REFUSALS}, summary="Drop an index")
def drop_index(request: HttpRequest, number: int) -> Status[None]:
    """Delete an index that is not active; a worker clears its vectors away. For admins."""
    actor = _admin(request)
    indexes.drop(_existing(number), actor=actor, queue=True)
    return Status(204, None)


def _admin(request: HttpRequest) -> User:
    """Return the admin who asks; raise NotPermittedError for anyone else and for a key that is narrowed."""
    principal = principal_of(request)
    if not may_manage_presets(principal):
        raise NotPermittedError("Only an admin may do this, with a key that is not narrowed.")
    return principal.user


def _existing(number: int) -> EmbeddingIndex:
    row = EmbeddingIndex.objects.filter(pk=number).first()
    if row is None:
        raise NotFoundError(f"There is no embedding index {number}.")
    return row


def _shown(row: EmbeddingIndex) -> IndexOut:
    made = progress(row)
    return IndexOut(
        id=row.pk,
        status=row.status,
        model=row.model,
        source=row.source,
        dimensions=row.dim,
        mode=row.mode,
        scan=row.scan,
        scan_dimensions=row.scan_dim,
        oversample=row.oversample,
        chunks=made.chunks,
        done=made.done,
        chunks_per_second=round(made.rate, 1),
        seconds_left=made.seconds_left,
        problem=row.problem,
        created_at=row.created_at,
        switched_at=row.switched_at,
    )
