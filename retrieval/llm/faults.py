"""What went wrong at a language model's service, in CoreCube's own words. No Django.

No message repeats anything that was sent or received: a service may echo its prompt or its key.
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
    400: "It refused the request; the prompt may be longer than it takes.",
    401: "It refused the API key.",
    402: "Its account has nothing left to pay with.",
    403: "It refused the API key.",
    404: "It knows no such model, or the address is wrong.",
    405: "There is no such service at the address.",
    413: "The prompt is longer than it takes.",
    422: "It refused the request.",
}
_PASSING: Final = frozenset({408, 409, 425})
#: What a service says to a prompt that it filters, or that is too long; another one may pass.
_OF_THE_PROMPT: Final = frozenset({400, 413, 422})


def answer_error(name: str, error: Exception) -> AnswerError:
    """Return an error of the SDK, of the connection or of reading the answer as one of CoreCube's."""
    if isinstance(error, AnswerError):
        return error
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return AnswerTimeoutError(f"{name} did not answer in time.")
    if isinstance(error, openai.APIStatusError):
        return status_error(name, error.status_code)
    if isinstance(error, openai.APIConnectionError):
        # Of what lies beneath only the kind is said.
        cause = type(error.__cause__).__name__ if error.__cause__ else "no connection"
        return AnswerUnavailableError(f"{name} cannot be reached, or broke off ({cause}).")
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIResponseValidationError):
        return AnswerUnavailableError(f"{name} failed while it was answering.")
    return AnswerGarbageError(f"What {name} answered cannot be read ({type(error).__name__}).")


def status_error(name: str, status: int) -> AnswerError:
    """Return the error for an answer with another status than 200."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return AnswerRateLimitedError(f"{name} takes no more requests for now (status 429).")
    if status >= _FIRST_SERVER_FAULT or status in _PASSING:
        return AnswerUnavailableError(f"{name} failed (status {status}).")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return AnswerRefusedError(f"{name} sends to another address, which is not followed (status {status}).")
    reason = _REASONS.get(status, "It refused the request.")
    kind = AnswerRejectedError if status in _OF_THE_PROMPT else AnswerRefusedError
    return kind(f"{name} cannot be used (status {status}). {reason}")
