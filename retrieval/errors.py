"""The engine's errors.

CoreCubeError
├── PipelineError               stages wired in an order that cannot work
├── StageError                  a stage failed; `stage` names it
├── SearchTimeoutError          a leg's statement outlived its share of the deadline
├── EncoderError                the embedding model failed
│   └── ModelMissingError       its files are not there
├── SyncRunningError            another sync of the same connection is at work
├── ConnectionDisabledError     the connection is switched off
├── IngestError                 one document cannot be taken in; `reason` is a stable word
└── InvalidRequestError
    ├── EmptyQueryError
    ├── QueryTooLongError
    └── UnknownPresetError
"""

from typing import ClassVar

from corecube.errors import CoreCubeError, InvalidRequestError


class PipelineError(CoreCubeError):
    """The stages of a pipeline do not fit together."""


class StageError(CoreCubeError):
    """A stage of the search failed."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        super().__init__(f"The stage {stage!r} failed.")


class SearchTimeoutError(CoreCubeError):
    """The search took longer than its deadline."""

    status: ClassVar[int] = 504
    code: ClassVar[str] = "deadline_exceeded"


class EncoderError(CoreCubeError):
    """The embedding model failed."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "encoder_failed"


class ModelMissingError(EncoderError):
    """The embedding model is not on this machine; run `manage.py models fetch`."""

    code: ClassVar[str] = "model_missing"


class SyncRunningError(CoreCubeError):
    """Another sync of this connection is running."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "sync_running"


class ConnectionDisabledError(CoreCubeError):
    """This connection is disabled; enable it in the administration first."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "connection_disabled"


class IngestError(CoreCubeError):
    """This document cannot be taken in."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class EmptyQueryError(InvalidRequestError):
    """The query is empty."""

    code: ClassVar[str] = "empty_query"


class QueryTooLongError(InvalidRequestError):
    """The query is too long."""

    code: ClassVar[str] = "query_too_long"


class UnknownPresetError(InvalidRequestError):
    """No preset with that name."""

    status: ClassVar[int] = 404
    code: ClassVar[str] = "unknown_preset"
