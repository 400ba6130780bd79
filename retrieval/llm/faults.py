"""Errors of a language model's service as CoreCube's errors.

No message contains anything that was sent or received: a service may echo its prompt or its key.
"""

from http import HTTPStatus
from typing import Final

import openai

from retrieval.errors import (
    AnswerError,
    AnswerGarbageError,
    AnswerRateLimitedError,
    AnswerRefusedError,
    AnswerRejectedError,
    AnswerTimeoutError,
    AnswerUnavailableError,
)

_FIRST_SERVER_FAULT: Final = 500
_REASONS: Final = {
    400: "It refused the request; the prompt may be too long.",
    401: "It refused the API key.",
    402: "Its account has no credit left.",
    403: "It refused the API key.",
    404: "The model does not exist there, or the address is wrong.",
    405: "There is no such service at this address.",
    413: "The prompt is too long.",
    422: "It refused the request.",
}
_TEMPORARY: Final = frozenset({408, 409, 425})
#: Statuses for a filtered or too long prompt; another prompt may succeed.
_PROMPT_ERRORS: Final = frozenset({400, 413, 422})


def answer_error(name: str, error: Exception) -> AnswerError:
    """Return CoreCube's error for an error of the SDK, the connection or the response."""
    if isinstance(error, AnswerError):
        return error
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return AnswerTimeoutError(f"{name} did not answer in time.")
    if isinstance(error, openai.APIStatusError):
        return status_error(name, error.status_code)
    if isinstance(error, openai.APIConnectionError):
        # Only the type of the cause.
        cause = type(error.__cause__).__name__ if error.__cause__ else "no connection"
        return AnswerUnavailableError(f"{name} cannot be reached or closed the connection ({cause}).")
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIResponseValidationError):
        return AnswerUnavailableError(f"{name} failed during its answer.")
    return AnswerGarbageError(f"The response of {name} is invalid ({type(error).__name__}).")


def status_error(name: str, status: int) -> AnswerError:
    """Return the error for a response with another status than 200."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return AnswerRateLimitedError(f"{name} has reached its rate limit (status 429).")
    if status >= _FIRST_SERVER_FAULT or status in _TEMPORARY:
        return AnswerUnavailableError(f"{name} failed (status {status}).")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return AnswerRefusedError(f"{name} redirects to another address, which is not allowed (status {status}).")
    reason = _REASONS.get(status, "It refused the request.")
    kind = AnswerRejectedError if status in _PROMPT_ERRORS else AnswerRefusedError
    return kind(f"{name} cannot be used (status {status}). {reason}")
