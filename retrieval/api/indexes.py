"""/api/v1/indexes: embedding indexes and the switch from one embedding model to another, for admins."""

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import BaseModel, Field

from corecube.api import principal_of
from corecube.database import first_or
from corecube.errors import ConfigError, InvalidRequestError, NotFoundError
from corecube.models import User
from retrieval.api.managed import installation_admin
from retrieval.api.schemas import CHANGE_REFUSALS, REFUSALS, RequestBody, filled
from retrieval.errors import ModelMissingError
from retrieval.index.embedding_index import all_indexes, progress
from retrieval.index.scans import ScanChoice
from retrieval.ingest import indexes
from retrieval.models import EmbeddingIndex

router = Router(tags=["indexes"])


class IndexOut(BaseModel):
    """An embedding index and its build progress."""

    id: int
    status: str = Field(description="active: in use; building: not complete; previous: available for a rollback.")
    model: str
    source: str = Field(description='"local:" and the model\'s folder, or the kind of a service.')
    dimensions: int
    mode: str = Field(description="chunk_first or late.")
    scan: str = Field(description="Vectors of the index scan: halfvec (full precision), int8, binary or prefix.")
    scan_dimensions: int = Field(description="Dimensions of a prefix; 0 for the other scans.")
    oversample: float = Field(description="Candidates per requested hit, rescored with full vectors.")
    chunks: int
    done: int = Field(description="Chunks with a vector in this index.")
    chunks_per_second: float = Field(description="Build speed so far; 0 if unknown.")
    seconds_left: float | None = Field(description="Estimate at this speed; null if unknown.")
    problem: str = Field(description="What stopped the build; empty for nothing.")
    created_at: datetime
    switched_at: datetime | None


class IndexIn(RequestBody):
    """An embedding index to build."""

    model: str = Field(default="", max_length=200, description="Folder of a local model; empty: the configured one.")
    dimensions: int = Field(default=0, ge=0, le=4000, description="Dimensions to store; 0: all.")
    next: bool = Field(default=False, description="Use the service that CORECUBE_NEXT_EMBEDDER describes.")
    mode: Literal["", "chunk_first", "late"] = Field(default="", description="Empty: the configured one.")
    scan: Literal["halfvec", "int8", "binary", "prefix"] = Field(
        default="halfvec", description="Vectors of the index scan, before rescoring; few models support prefix."
    )
    scan_dimensions: int = Field(default=0, ge=0, le=4000, description="Dimensions of a prefix.")
    oversample: float = Field(
        default=0, ge=0, le=20, description="Candidates per requested hit, 1 to 20; 0: the scan's default."
    )


@router.get("/indexes", response={200: list[IndexOut], **REFUSALS}, summary="List embedding indexes")
def list_indexes(request: HttpRequest) -> list[IndexOut]:
    """Return the embedding indexes, the active one first. For admins, with a key that is not narrowed."""
    _admin(request)
    return [_shown(row) for row in all_indexes()]


@router.post("/indexes", response={202: IndexOut, **CHANGE_REFUSALS}, summary="Build an embedding index")
def start_index(request: HttpRequest, body: IndexIn) -> Status[IndexOut]:
    """Add an index to the active one; a worker builds it. For admins."""
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


@router.post("/indexes/rollback", response={200: IndexOut, **CHANGE_REFUSALS}, summary="Roll back an index")
def roll_back(request: HttpRequest) -> IndexOut:
    """Use the previous index for searches again. For admins."""
    return _shown(indexes.roll_back(actor=_admin(request)))


@router.post("/indexes/{number}/build", response={202: IndexOut, **CHANGE_REFUSALS}, summary="Resume a build")
def build_index(request: HttpRequest, number: int) -> Status[IndexOut]:
    """Let a worker resume a build that stopped. For admins."""
    actor, row = _admin(request), _existing(number)
    indexes.build_again(row, actor=actor)
    return Status(202, _shown(row))


@router.post("/indexes/{number}/switch", response={200: IndexOut, **CHANGE_REFUSALS}, summary="Switch to an index")
def switch_index(request: HttpRequest, number: int) -> IndexOut:
    """Use a complete index for all searches from now on. For admins."""
    actor = _admin(request)
    return _shown(indexes.switch_to(_existing(number), actor=actor))


@router.post("/indexes/{number}/drop", response={204: None, **CHANGE_REFUSALS}, summary="Drop an index")
def drop_index(request: HttpRequest, number: int) -> Status[None]:
    """Delete an index that is not active; a worker removes its vectors. For admins."""
    actor = _admin(request)
    indexes.drop(_existing(number), actor=actor, queue=True)
    return Status(204, None)


def _admin(request: HttpRequest) -> User:
    return installation_admin(principal_of(request))


def _existing(number: int) -> EmbeddingIndex:
    return first_or(NotFoundError(f"There is no embedding index {number}."), EmbeddingIndex.objects.filter(pk=number))


def _shown(row: EmbeddingIndex) -> IndexOut:
    built = progress(row)
    return filled(
        IndexOut,
        row,
        dimensions=row.dim,
        scan_dimensions=row.scan_dim,
        chunks=built.chunks,
        done=built.done,
        chunks_per_second=round(built.rate, 1),
        seconds_left=built.seconds_left,
    )
