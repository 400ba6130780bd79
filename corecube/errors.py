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
└── UnavailableError            a required service is down
    └── DatabaseUnavailableError

`retrieval.errors` continues the tree for the engine. A class's docstring is its default message;
`status` is the HTTP status of an API response, and `code` a stable identifier for API clients.
"""

from collections.abc import Mapping
from typing import ClassVar


class CoreCubeError(Exception):
    """An internal error occurred."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class ConfigError(CoreCubeError):
    """A setting is missing or out of range."""

    code: ClassVar[str] = "config_error"


class NotFoundError(CoreCubeError):
    """Nothing by that name is visible to you."""

    status: ClassVar[int] = 404
    code: ClassVar[str] = "not_found"


class UnknownConnectionError(NotFoundError):
    """No connection with that name is visible to you."""

    code: ClassVar[str] = "unknown_connection"


class UnknownPrincipalError(NotFoundError):
    """No user with that name."""

    code: ClassVar[str] = "unknown_principal"


class InvalidRequestError(CoreCubeError):
    """The request is not valid."""

    status: ClassVar[int] = 422
    code: ClassVar[str] = "invalid_request"


class InvalidFieldsError(InvalidRequestError):
    """Some fields are not valid."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)  #: By field, empty for general ones.
        field, message = next(iter(self.problems.items()))
        self.param = field or None
        super().__init__(f"{field}: {message}" if field else message)


class UnstorableValueError(InvalidRequestError):
    """A value is too long, too large or contains characters that cannot be stored. Correct it and try again."""

    code: ClassVar[str] = "unstorable_value"


class NotAuthenticatedError(CoreCubeError):
    """A valid API key or sign-in is required."""

    status: ClassVar[int] = 401
    code: ClassVar[str] = "invalid_api_key"


class NotPermittedError(CoreCubeError):
    """You do not have permission for this."""

    status: ClassVar[int] = 403
    code: ClassVar[str] = "not_permitted"


class ConflictError(CoreCubeError):
    """This item was changed in the meantime."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "conflict"


class RefusedForNowError(CoreCubeError):
    """This is not possible right now. Try again later."""

    status: ClassVar[int] = 429

    def __init__(self, message: str = "", *, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds  #: Seconds to wait, at least 1.


class RateLimitedError(RefusedForNowError):
    """The rate limit of this API key is exceeded."""

    code: ClassVar[str] = "rate_limit_exceeded"

    def __init__(self, *, retry_after_seconds: int) -> None:
        message = f"The rate limit of this API key is exceeded. Try again in {retry_after_seconds} s."
        super().__init__(message, retry_after_seconds=retry_after_seconds)


class OverloadedError(RefusedForNowError):
    """The server is overloaded. Try again in a moment."""

    code: ClassVar[str] = "overloaded"

    def __init__(self, *, reason: str, retry_after_seconds: int) -> None:
        super().__init__(retry_after_seconds=retry_after_seconds)
        self.reason = reason  #: A stable identifier for logs and metrics: "pool_full", "hard_reject" ...


class UnavailableError(CoreCubeError):
    """A required service is not available."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "unavailable"


class DatabaseUnavailableError(UnavailableError):
    """The database is not available."""

    code: ClassVar[str] = "database_unavailable"
