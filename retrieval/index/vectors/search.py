"""Searching the vector files: they give candidates, and PostgreSQL the hits.

The files know neither access nor the latest changes. The candidates' vectors are read from PostgreSQL under the scope,
with those of documents that changed since the files were written. What is returned is as if it had compared all there.
"""

from dataclasses import dataclass
from typing import Final

from corecube.scope import AccessScope
from retrieval.engine.types import Ranking, ScoreType, Vector
from retrieval.errors import VectorFilesUnavailableError
from retrieval.index import outbox
from retrieval.index.reading import read
from retrieval.index.statements import prepared
from retrieval.index.store import VectorIndex, ranking, vector_parameters
from retrieval.index.vectors.reader import View

_RESCORED: Final = prepared("dense_rescored")
_MIN_CANDIDATES: Final = 200  #: Candidates whose whole vectors are compared, at least; and twice the hits wanted.


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """The vector files, and the documents in scope that changed since they were written."""

    view: View
    changed: list[str]


def opened(view: View, *, scope: AccessScope, index: VectorIndex, timeout_seconds: float) -> OpenFiles:
    """Return the files with what they lack in a scope.

    Raises VectorFilesUnavailableError for files of another index or database, or too far behind, and
    SearchTimeoutError.
    """
    if (view.about["index"], view.about["database"]) != (index.id, outbox.known_history()):
        raise VectorFilesUnavailableError
    changed = outbox.changed_in_scope(view.position, scope=scope, timeout_seconds=timeout_seconds)
    if changed is None:
        raise VectorFilesUnavailableError
    return OpenFiles(view, changed)


def dense_files(
    vector: Vector, *, files: OpenFiles, scope: AccessScope, index: VectorIndex, depth: int, timeout_seconds: float
) -> Ranking:
    """Return the `depth` chunks in scope with the highest cosine, found by comparing all of them in the vector files.

    Raises VectorFilesUnavailableError for files that cannot be read or lack chunks, and SearchTimeoutError.
    """
    view = files.view
    candidates = view.nearest(vector, scope.connection_ids, max(_MIN_CANDIDATES, 2 * depth))
    parameters = vector_parameters(vector, scope, index, depth) | {
        "documents": candidates.documents,
        "ordinals": candidates.ordinals,
        "changed": files.changed,
    }
    hits = ranking(read(_RESCORED, parameters, timeout_seconds=timeout_seconds), ScoreType.COSINE)
    if len(hits) < min(depth, view.count(scope.connection_ids)):
        raise VectorFilesUnavailableError
    return hits
