"""The engine's errors.

CoreCubeError
├── PipelineError               stages wired in an order that cannot work
├── StageError                  a stage failed; `stage` names it
├── SearchTimeoutError          a leg's statement outlived its share of the deadline
├── EncoderError                the embedding model failed
│   ├── ModelMissingError       its files are not there
│   └── EncoderUnavailableError the embedding service cannot be used now; later it may
│       └── EncoderTimeoutError the model took longer than it may
├── Bm25UnavailableError        there is no BM25 index that can be read; vectors alone are searched
├── IndexStateError             an embedding index is not in the state that this needs
├── RerankError                 the reranker failed or answered nonsense; the search falls back
│   ├── RerankTimeoutError      it would take longer than it may
│   └── RerankBreakerOpenError  it failed too often and is left alone for a while
├── AnswerError                 a language model wrote no answer, or only a part of one
│   ├── AnswerUnavailableError  it cannot be reached, broke, or broke off; later it may answer
│   │   ├── AnswerTimeoutError  it took too long
│   │   ├── AnswerRateLimitedError
│   │   └── AnswerBreakerOpenError
│   ├── AnswerRefusedError      it does not take the request: a wrong key, an unknown model
│   │   └── AnswerRejectedError   a prompt too long, or one that it filters
│   └── AnswerGarbageError      what it answered is nothing that can be read
├── JudgingError                no language model judged how relevant candidates are; the search falls back
│   ├── NoJudgeError            none is configured that answers the principal
│   ├── JudgingForbiddenError   no single one may read all of the candidates, or the question
│   └── JudgingTimeoutError     it took longer than it may
├── NoLanguageModelError        no language model may be asked about what is to be searched
├── SyncRunningError            another sync of the same connection is at work
├── ConnectionDisabledError     the connection is switched off
├── EnrichError                 a language model wrote nothing for a chunk; it stays as it is
├── IngestError                 one document cannot be indexed; `reason` is stable
├── VersionConflictError        somebody else changed a preset's versions, or a section set, meanwhile
├── ConfigError
│   └── TunablesError           values that do not fit their tunables; `problems` names them
│       └── OverridesError      the same, sent with a request
├── NotFoundError
│   ├── UnknownConversationError
│   ├── UnknownPassageError
│   ├── UnknownSectionError
│   │   └── UnknownSectionSetError
│   ├── UnknownTraceError
│   └── UnknownVersionError
└── InvalidRequestError
    ├── EmptyQueryError
    ├── QueryTooLongError
    ├── UnknownModeError
    └── UnknownPresetError
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from corecube.errors import ConfigError, CoreCubeError, InvalidRequestError, NotFoundError

_MAX_PROBLEMS: Final = 5
_MAX_NAME_LENGTH: Final = 60


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


class EncoderUnavailableError(EncoderError):
    """The embedding service cannot be used right now."""

    code: ClassVar[str] = "encoder_unavailable"


class EncoderTimeoutError(EncoderUnavailableError):
    """The embedding model did not answer in the time that was left."""

    code: ClassVar[str] = "encoder_timeout"


class IndexStateError(CoreCubeError):
    """This embedding index is not in the state that this needs."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "index_state"


class Bm25UnavailableError(CoreCubeError):
    """There is no BM25 index that can be read."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "bm25_unavailable"


class EnrichError(CoreCubeError):
    """The language model wrote nothing that can be used."""

    status: ClassVar[int] = 502
    code: ClassVar[str] = "enrich_failed"


class RerankError(CoreCubeError):
    """The reranker failed."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "rerank_failed"


class RerankTimeoutError(RerankError):
    """The reranker did not answer in the time that was left."""

    code: ClassVar[str] = "rerank_timeout"


class RerankBreakerOpenError(RerankError):
    """The reranker failed several times in a row and is not asked for a while."""

    code: ClassVar[str] = "rerank_breaker_open"


class AnswerError(CoreCubeError):
    """The language model wrote no answer."""

    status: ClassVar[int] = 502
    code: ClassVar[str] = "answer_failed"


class AnswerUnavailableError(AnswerError):
    """The language model cannot be used right now."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "answer_unavailable"


class AnswerTimeoutError(AnswerUnavailableError):
    """The language model did not answer in time."""

    status: ClassVar[int] = 504
    code: ClassVar[str] = "answer_timeout"


class AnswerRateLimitedError(AnswerUnavailableError):
    """The language model's service takes no more requests for now."""

    code: ClassVar[str] = "answer_rate_limited"


class AnswerBreakerOpenError(AnswerUnavailableError):
    """The language model failed several times in a row and is not asked for a while."""

    code: ClassVar[str] = "answer_breaker_open"


class AnswerRefusedError(AnswerError):
    """The language model's service refused the request."""

    code: ClassVar[str] = "answer_refused"


class AnswerRejectedError(AnswerRefusedError):
    """The language model's service refused what was asked, for its words or its length."""


class AnswerFormatError(AnswerRejectedError):
    """The language model does not support the requested format."""

    status: ClassVar[int] = 400
    code: ClassVar[str] = "unsupported_parameter"
    param: ClassVar[str] = "response_format"


class AnswerGarbageError(AnswerError):
    """What the language model's service answered cannot be read."""

    code: ClassVar[str] = "answer_garbage"


class JudgingError(CoreCubeError):
    """The language model judged no candidate."""

    status: ClassVar[int] = 502
    code: ClassVar[str] = "relevance_failed"


class NoJudgeError(JudgingError):
    """No language model is configured to grade the candidates."""

    code: ClassVar[str] = "relevance_none"


class JudgingForbiddenError(JudgingError):
    """No single language model may read all of the candidates."""

    code: ClassVar[str] = "relevance_forbidden"


class JudgingTimeoutError(JudgingError):
    """The language model did not judge the candidates in time."""

    code: ClassVar[str] = "relevance_timeout"


class NoLanguageModelError(CoreCubeError):
    """No language model is configured that answers you, so nothing can put the question in other words."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "no_language_model"


class SyncRunningError(CoreCubeError):
    """Another sync of this connection is running."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "sync_running"


class ConnectionDisabledError(CoreCubeError):
    """This connection is disabled; enable it in the administration first."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "connection_disabled"


class IngestError(CoreCubeError):
    """This document cannot be indexed."""

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


class UnknownModeError(InvalidRequestError):
    """The preset has no leg of that name to search with alone."""

    code: ClassVar[str] = "unknown_mode"


class UnknownTraceError(NotFoundError):
    """You have made no search with that trace id."""

    code: ClassVar[str] = "unknown_trace"


class UnknownConversationError(NotFoundError):
    """You have no such conversation."""

    code: ClassVar[str] = "unknown_conversation"


class UnknownPassageError(NotFoundError):
    """There is no such passage in your scope."""

    code: ClassVar[str] = "unknown_passage"


class UnknownSectionError(NotFoundError):
    """This section set has no such section."""

    code: ClassVar[str] = "unknown_section"


class UnknownSectionSetError(UnknownSectionError):
    """There is no section set of that name."""

    code: ClassVar[str] = "unknown_section_set"


class UnknownVersionError(NotFoundError):
    """This preset has no such version."""

    code: ClassVar[str] = "unknown_version"


class VersionConflictError(CoreCubeError):
    """Somebody else changed this preset meanwhile; look at it again."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "version_conflict"


class TunablesError(ConfigError):
    """Values do not fit their tunables."""

    status: ClassVar[int] = 422
    code: ClassVar[str] = "invalid_values"

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)  #: What is wrong with each value, by the tunable's dotted name.
        said = [f"{_shown(name)} {problem}." for name, problem in list(problems.items())[:_MAX_PROBLEMS]]
        unsaid = len(problems) - len(said)
        super().__init__(" ".join([*said, f"And {unsaid} more."] if unsaid else said))


class OverridesError(TunablesError):
    """Values of a request do not fit their tunables."""

    code: ClassVar[str] = "invalid_overrides"


def _shown(name: str) -> str:
    """Return a tunable's name as an error shows it; one that cannot be any is quoted and cut."""
    is_plain = name.isascii() and name.replace(".", "").isidentifier() and len(name) <= _MAX_NAME_LENGTH
    return name if is_plain else ascii(name[:_MAX_NAME_LENGTH])
