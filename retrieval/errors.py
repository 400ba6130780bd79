"""The engine's errors. Those of models and searches let a search fall back where it can."""

from collections.abc import Mapping
from typing import ClassVar, Final

from corecube.errors import ConfigError, CoreCubeError, InvalidRequestError, NotFoundError, UnavailableError

_MAX_PROBLEMS: Final = 5
_MAX_NAME_LENGTH: Final = 60


class PipelineError(CoreCubeError):
    """The stages of a pipeline do not fit together."""


class StageError(CoreCubeError):
    """A stage of the search failed."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        super().__init__(f"The stage {stage!r} failed.")


class SearchTimeoutError(CoreCubeError, status=504, code="deadline_exceeded"):
    """The search took longer than its deadline."""


class SearchCancelledError(CoreCubeError, status=499, code="cancelled"):
    """The search was cancelled."""


class StorePausedError(UnavailableError, code="store_breaker_open"):
    """The store failed several times in a row and is paused."""


class EncoderError(CoreCubeError, status=503, code="encoder_failed"):
    """The embedding model failed."""


class ModelMissingError(EncoderError, code="model_missing"):
    """The embedding model is not on this machine; run `manage.py models fetch`."""


class EncoderUnavailableError(EncoderError, code="encoder_unavailable"):
    """The embedding service cannot be used right now."""


class EncoderTimeoutError(EncoderUnavailableError, code="encoder_timeout"):
    """The embedding model did not answer in the remaining time."""


class IndexStateError(CoreCubeError, status=409, code="index_state"):
    """The embedding index is not in the required state."""


class DistributionError(CoreCubeError, status=409, code="distribution"):
    """The documents cannot be distributed over the machines of this database."""


class ReadModelUnavailableError(CoreCubeError, status=503, code="read_model_unavailable"):
    """No readable read model is available."""


class Bm25UnavailableError(ReadModelUnavailableError, code="bm25_unavailable"):
    """No readable BM25 index is available."""


class VectorFilesUnavailableError(ReadModelUnavailableError, code="vector_files_unavailable"):
    """No readable vector files are available."""


class EnrichError(CoreCubeError, status=502, code="enrich_failed"):
    """The language model returned no usable text."""


class RerankError(CoreCubeError, status=503, code="rerank_failed"):
    """The reranker failed."""


class RerankTimeoutError(RerankError, code="rerank_timeout"):
    """The reranker did not answer in the remaining time."""


class RerankBreakerOpenError(RerankError, code="rerank_breaker_open"):
    """The reranker failed several times in a row and is paused."""


class AnswerError(CoreCubeError, status=502, code="answer_failed"):
    """The language model wrote no answer."""


class AnswerUnavailableError(AnswerError, status=503, code="answer_unavailable"):
    """The language model cannot be used right now."""


class AnswerTimeoutError(AnswerUnavailableError, status=504, code="answer_timeout"):
    """The language model did not answer in time."""


class AnswerRateLimitedError(AnswerUnavailableError, code="answer_rate_limited"):
    """The language model's service has reached its rate limit."""


class AnswerBreakerOpenError(AnswerUnavailableError, code="answer_breaker_open"):
    """The language model failed several times in a row and is paused."""


class AnswerRefusedError(AnswerError, code="answer_refused"):
    """The language model's service refused the request."""


class AnswerRejectedError(AnswerRefusedError):
    """The language model's service refused the request, for its content or its length."""


class AnswerFormatError(AnswerRejectedError, status=400, code="unsupported_parameter"):
    """The language model does not support the requested format."""

    param: ClassVar[str] = "response_format"


class AnswerGarbageError(AnswerError, code="answer_garbage"):
    """The response of the language model's service is invalid."""


class JudgingError(CoreCubeError, status=502, code="relevance_failed"):
    """The language model graded no candidate."""


class NoJudgeError(JudgingError, code="relevance_none"):
    """No language model is configured to grade the candidates."""


class JudgingForbiddenError(JudgingError, code="relevance_forbidden"):
    """No single language model may read all of the candidates."""


class JudgingTimeoutError(JudgingError, code="relevance_timeout"):
    """The language model did not grade the candidates in time."""


class NoLanguageModelError(CoreCubeError, status=409, code="no_language_model"):
    """No language model is available to you for query expansion."""


class SyncRunningError(CoreCubeError, status=409, code="sync_running"):
    """Another sync of this connection is running."""


class ConnectionDisabledError(CoreCubeError, status=409, code="connection_disabled"):
    """This connection is disabled. Enable it first."""


class IngestError(CoreCubeError):
    """This document cannot be indexed."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason  #: Stable, such as "corrupt".
        super().__init__(message)


class EmptyQueryError(InvalidRequestError, code="empty_query"):
    """The query is empty."""


class QueryTooLongError(InvalidRequestError, code="query_too_long"):
    """The query is too long."""


class UnknownPresetError(InvalidRequestError, status=404, code="unknown_preset"):
    """No preset with that name."""


class UnknownModeError(InvalidRequestError, code="unknown_mode"):
    """The preset does not have this search mode."""


class UnknownTraceError(NotFoundError, code="unknown_trace"):
    """You have no search with this trace ID."""


class UnknownConversationError(NotFoundError, code="unknown_conversation"):
    """You have no conversation with this ID."""


class UnknownPassageError(NotFoundError, code="unknown_passage"):
    """There is no such passage in your scope."""


class UnknownSectionError(NotFoundError, code="unknown_section"):
    """This section set has no such section."""


class UnknownSectionSetError(UnknownSectionError, code="unknown_section_set"):
    """There is no section set with this name."""


class UnknownVersionError(NotFoundError, code="unknown_version"):
    """This preset has no such version."""


class VersionConflictError(CoreCubeError, status=409, code="version_conflict"):
    """Another user has changed this preset. Check the changes."""


class GateError(CoreCubeError, status=409, code="gate_not_passed"):
    """A gate of this preset is not passed."""


class ReferenceVersionError(CoreCubeError, status=409, code="reference_version"):
    """A reference version stays as shipped. Change the preset without @reference instead."""


class TunablesError(ConfigError, status=422, code="invalid_values"):
    """Some settings are not valid."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)  #: What is wrong with each value, by the tunable's dotted name.
        said = [f"{_shown(name)} {problem}." for name, problem in list(problems.items())[:_MAX_PROBLEMS]]
        unsaid = len(problems) - len(said)
        super().__init__(" ".join([*said, f"And {unsaid} more."] if unsaid else said))


class OverridesError(TunablesError, code="invalid_overrides"):
    """Some overrides of the request are not valid."""


def _shown(name: str) -> str:
    """Return a tunable's name as an error shows it; one that cannot be any is quoted and cut."""
    is_plain = name.isascii() and name.replace(".", "").isidentifier() and len(name) <= _MAX_NAME_LENGTH
    return name if is_plain else ascii(name[:_MAX_NAME_LENGTH])
