"""What an embedding index's HNSW index is walked by, and the statements of each way."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from corecube.errors import ConfigError
from retrieval.encoders import Encoder
from retrieval.index.statements import DENSE_HNSW, statement
from retrieval.models import EmbeddingIndex

_Scan = EmbeddingIndex.Scan

MAX_OVERSAMPLE: Final = 20.0
#: Chunks that a walk finds for each requested one by default; measured in the decision on quantised scans.
USUAL_OVERSAMPLE: Final[Mapping[str, float]] = {
    _Scan.HALFVEC: 1.0,
    _Scan.INT8: 4.0,
    _Scan.BINARY: 8.0,
    _Scan.PREFIX: 4.0,
}
#: The scans over reduced vectors, each followed by rescoring with full vectors.
_DENSE: Final[Mapping[str, str]] = {
    _Scan.HALFVEC: DENSE_HNSW,
    _Scan.INT8: statement("dense_int8"),
    _Scan.BINARY: statement("dense_binary"),
    _Scan.PREFIX: statement("dense_prefix"),
}
_CREATE: Final[Mapping[str, str]] = {
    _Scan.HALFVEC: statement("upkeep/create_hnsw"),
    _Scan.INT8: statement("upkeep/create_hnsw_int8"),
    _Scan.BINARY: statement("upkeep/create_hnsw_binary"),
    _Scan.PREFIX: statement("upkeep/create_hnsw_prefix"),
}
#: Where the bits of an INT8 component lie, in the typical size of a unit vector's component: 1 / sqrt(dim).
_THRESHOLDS: Final = (-1.75, -1.25, -0.75, -0.25, 0.25, 0.75, 1.25, 1.75)


@runtime_checkable
class HasPrefixes(Protocol):
    """An encoder with the minimum length of its truncated vectors."""

    @property
    def min_dim(self) -> int:
        """Minimum number of components after truncation, 0 without truncation."""


@dataclass(frozen=True, slots=True)
class ScanChoice:
    """How a new embedding index is to be walked."""

    scan: str = _Scan.HALFVEC
    dim: int = 0  #: Components that PREFIX is walked by; 0 for the other scans.
    oversample: float = 0.0  #: 0 takes the usual one of the scan.

    def of(self, encoder: Encoder) -> "ScanChoice":
        """Return the choice with its numbers filled in; raise ConfigError for one that this model does not allow."""
        if self.scan not in _DENSE:
            raise ConfigError(f"Unknown scan {self.scan!r}. Available scans: {', '.join(_DENSE)}.")
        if self.scan == _Scan.PREFIX:
            smallest = encoder.min_dim if isinstance(encoder, HasPrefixes) else 0
            if not smallest:
                raise ConfigError(
                    f"The first dimensions of the vectors of {encoder.name!r} cannot be used alone: it was"
                    " not trained so."
                )
            if not smallest <= self.dim < encoder.dim:
                raise ConfigError(
                    f"A prefix scan of {encoder.name!r} supports {smallest} to {encoder.dim - 1} dimensions,"
                    f" not {self.dim}."
                )
        elif self.dim:
            raise ConfigError(f"Only the scan {_Scan.PREFIX.value} supports a number of dimensions.")
        oversample = self.oversample or USUAL_OVERSAMPLE[self.scan]
        if not 1 <= oversample <= MAX_OVERSAMPLE:
            raise ConfigError(f"The oversampling must be between 1 and {MAX_OVERSAMPLE:g}, not {oversample:g}.")
        return ScanChoice(self.scan, self.dim, oversample)


def dense_statement(scan: str, dim: int) -> str:
    """Return the statement that walks the HNSW index of such a scan, over vectors of `dim` components."""
    asked = f"%(vector)s::halfvec({int(dim)})"
    return _DENSE[scan].replace("{levels}", _levels("vector", dim)).replace("{asked_levels}", _levels(asked, dim))


def create_statement(scan: str, *, index: int, dim: int, scan_dim: int) -> str:
    """Return the statement that creates the HNSW index of an embedding index."""
    sql = _CREATE[scan].replace("{levels}", _levels("vector", dim))
    return sql % {"index": int(index), "dim": int(dim), "scan_dim": int(scan_dim)}


def _levels(vector: str, dim: int) -> str:
    """Return the expression of a vector's bits: for each threshold, which components exceed it.

    The Hamming distance of two counts the thresholds between them, so it is the L1 distance of components in nine
    levels, by the processor's own instruction.
    """
    bits = (
        f"binary_quantize({vector}::halfvec({dim})::vector({dim})"
        f" - array_fill({threshold / math.sqrt(dim)!r}::real, ARRAY[{dim}])::vector({dim}))"
        for threshold in _THRESHOLDS
    )
    return f"({' || '.join(bits)})::bit({len(_THRESHOLDS) * dim})"
