"""The base of what the APIs and tools read as JSON."""

from collections.abc import Mapping
from types import NoneType
from typing import get_args

from pydantic import BaseModel, model_validator


class RequestBody(BaseModel):
    """A JSON object of a request; null for an optional field is the same as leaving the field out.

    Clients that serialise every field they know send null for those without a value. A field whose type has None
    keeps its null, which may differ from leaving it out: in a change it removes a value.
    """

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            return given
        return {name: value for name, value in given.items() if value is not None or not cls._ignores_null(name)}

    @classmethod
    def _ignores_null(cls, name: str) -> bool:
        field = cls.model_fields.get(name)
        return field is not None and not field.is_required() and NoneType not in get_args(field.annotation)
