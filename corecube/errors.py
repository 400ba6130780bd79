"""All errors that CoreCube raises.

CoreCubeError
├── ConfigError                 a setting is missing or out of range
├── NotFoundError               not found, or not visible to you
│   ├── UnknownConnectionError
│   └── UnknownPrincipalError
├── InvalidRequestError         the request is not valid
│   ├── InvalidFieldsError      some fields of a row are not valid
│   └── UnstorableValueError
├── NotAuthenticatedError
├── NotPermittedError
├── ConflictError               a concurrent change
├── RefusedForNowError          the same request may succeed later
│   ├── RateLimitedError        the rate limit of the API key
│   └── OverloadedError         the server is overloaded
├── BackupError                 a backup cannot be made, read or restored
└── UnavailableError            a required service is down
    ├── DatabaseUnavailableError
    └── RestoringError          a restore is running or was interrupted

`retrieval.errors` continues the tree for the engine. A class's docstring is its default message;
`status` is the HTTP status of an API response, and `code` a stable identifier for API clients.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class CoreCubeError(Exception):
    """An internal error occurred."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"

    def __init_subclass__(cls, *, status: int | None = None, code: str | None = None) -> None:
        cls.status, cls.code = status or cls.status, code or cls.code

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


def first_line(error: Exception) -> str:
    """Return the first line of an error's message; the name of its class for an empty one."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class ConfigError(CoreCubeError, code="config_error"):
    """A setting is missing or out of range."""


class NotFoundError(CoreCubeError, status=404, code="not_found"):
    """Nothing with that name is visible to you."""


class UnknownConnectionError(NotFoundError, code="unknown_connection"):
    """No connection with that name is visible to you."""


class UnknownPrincipalError(NotFoundError, code="unknown_principal"):
    """No user with that name."""


class InvalidRequestError(CoreCubeError, status=422, code="invalid_request"):
    """The request is not valid."""


class InvalidFieldsError(InvalidRequestError):
    """Some fields are not valid."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)  #: By field, empty for general ones.
        field, message = next(iter(self.problems.items()))
        self.param = field or None
        super().__init__(f"{field}: {message}" if field else message)


class UnstorableValueError(InvalidRequestError, code="unstorable_value"):
    """A value is too long, too large or contains characters that cannot be stored. Correct it and try again."""


class NotAuthenticatedError(CoreCubeError, status=401, code="invalid_api_key"):
    """A valid API key or sign-in is required."""


class NotPermittedError(CoreCubeError, status=403, code="not_permitted"):
    """You do not have permission for this."""


class ConflictError(CoreCubeError, status=409, code="conflict"):
    """This item was changed in the meantime."""


class RefusedForNowError(CoreCubeError, status=429):
    """This is not possible right now. Try again later."""

    def __init__(self, message: str = "", *, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds  #: Seconds to wait, at least 1.


class RateLimitedError(RefusedForNowError, code="rate_limit_exceeded"):
    """The rate limit of this API key is exceeded."""

    def __init__(self, *, retry_after_seconds: int) -> None:
        message = f"The rate limit of this API key is exceeded. Try again in {retry_after_seconds} s."
        super().__init__(message, retry_after_seconds=retry_after_seconds)


class OverloadedError(RefusedForNowError, code="overloaded"):
    """The server is overloaded. Try again in a moment."""

    def __init__(self, *, reason: str, retry_after_seconds: int) -> None:
        super().__init__(retry_after_seconds=retry_after_seconds)
        self.reason = reason  #: A stable identifier for logs and metrics: "pool_full", "hard_reject" ...


class BackupError(CoreCubeError, code="backup_error"):
    """The backup cannot be made, read or restored."""


class UnavailableError(CoreCubeError, status=503, code="unavailable"):
    """A required service is not available."""


class DatabaseUnavailableError(UnavailableError, code="database_unavailable"):
    """The database is not available."""


class RestoringError(UnavailableError, code="restoring"):
    """A restore is running or was interrupted, so the data is incomplete. Run the same `manage.py restore` again."""


def error_body(message: str, *, status: int, code: str, param: str | None = None) -> dict[str, Any]:
    """Return the body of an error response."""
    return {"error": {"message": message, "type": _type_of(status), "param": param, "code": code}}


def _type_of(status: int) -> str:
    """Return OpenAI's error type for a status."""
    if status >= 500:  # noqa: PLR2004 -- HTTP
        return "server_error"
    special = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    return special.get(status, "invalid_request_error")
