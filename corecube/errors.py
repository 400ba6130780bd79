"""Every error that CoreCube raises on purpose.

CoreCubeError
├── ConfigError                 a setting or tunable is out of its range
├── NotFoundError               nothing by that name is visible to you
│   ├── UnknownConnectionError
│   └── UnknownPrincipalError
├── InvalidRequestError         the request cannot be carried out as sent
│   └── UnstorableValueError
├── NotAuthenticatedError
├── NotPermittedError
├── ConflictError               somebody else was faster
├── RefusedForNowError          the same request may be carried out a little later
│   ├── RateLimitedError        more requests than the API key may send
│   └── OverloadedError         more is asked for than can be done in time
└── UnavailableError            something the request needs is down
    └── DatabaseUnavailableError

`retrieval.errors` continues the tree for the engine. A class's docstring is its default message;
`status` is the HTTP status that an API answers with and `code` the stable word for programs.
"""

from typing import ClassVar


class CoreCubeError(Exception):
    """Something went wrong in CoreCube."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class ConfigError(CoreCubeError):
    """A setting is missing or out of its range."""

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
    """The request cannot be carried out as it was sent."""

    status: ClassVar[int] = 422
    code: ClassVar[str] = "invalid_request"


class UnstorableValueError(InvalidRequestError):
    """A value is too long, too large or holds characters that cannot be stored. Correct it and send it again."""

    code: ClassVar[str] = "unstorable_value"


class NotAuthenticatedError(CoreCubeError):
    """A valid API key or a sign-in is needed."""

    status: ClassVar[int] = 401
    code: ClassVar[str] = "invalid_api_key"


class NotPermittedError(CoreCubeError):
    """This needs a right that you do not have."""

    status: ClassVar[int] = 403
    code: ClassVar[str] = "not_permitted"


class ConflictError(CoreCubeError):
    """It has been changed in the meantime."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "conflict"


class RefusedForNowError(CoreCubeError):
    """This cannot be carried out now; the same request may be sent again later."""

    status: ClassVar[int] = 429

    def __init__(self, message: str = "", *, retry_after_seconds: int) -> None:
        super().__init__(message)
        #: Whole seconds to wait, at least 1.
        self.retry_after_seconds = retry_after_seconds


class RateLimitedError(RefusedForNowError):
    """This API key has sent more requests than it may."""

    code: ClassVar[str] = "rate_limit_exceeded"

    def __init__(self, *, retry_after_seconds: int) -> None:
        message = f"This API key may send again in {retry_after_seconds} s."
        super().__init__(message, retry_after_seconds=retry_after_seconds)


class OverloadedError(RefusedForNowError):
    """More is asked for than can be done in time; it may be asked again in a moment."""

    code: ClassVar[str] = "overloaded"

    def __init__(self, *, reason: str, retry_after_seconds: int) -> None:
        super().__init__(retry_after_seconds=retry_after_seconds)
        #: A stable word for logs and figures: "pool_full", "hard_reject" ...
        self.reason = reason


class UnavailableError(CoreCubeError):
    """Something that the request needs is not available right now."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "unavailable"


class DatabaseUnavailableError(UnavailableError):
    """The database does not answer."""

    code: ClassVar[str] = "database_unavailable"
