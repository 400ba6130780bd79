"""Refusals that only the OpenAI-compatible API makes."""

from typing import ClassVar

from corecube.errors import InvalidRequestError, NotFoundError


class UnsupportedParameterError(InvalidRequestError):
    """A parameter asks for something that this server does not do."""

    status: ClassVar[int] = 400
    code: ClassVar[str] = "unsupported_parameter"

    def __init__(self, param: str, message: str) -> None:
        self.param = param
        super().__init__(message)


class MissingMessageError(InvalidRequestError):
    """There is no user message to answer."""

    code: ClassVar[str] = "missing_message"


class ModelNotFoundError(NotFoundError):
    """No model with that name can be used with this API key."""

    code: ClassVar[str] = "model_not_found"

    def __init__(self, param: str = "model") -> None:
        self.param = param
        super().__init__()
