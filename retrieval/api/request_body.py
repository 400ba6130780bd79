"""Base classes of the JSON that the APIs and tools read."""

from collections.abc import Mapping
from types import NoneType
from typing import get_args

from pydantic import BaseModel, ConfigDict, model_validator


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
        ignored = {
            name
            for name, field in cls.model_fields.items()
            if not field.is_required() and NoneType not in get_args(field.annotation)
        }
        return {name: value for name, value in given.items() if value is not None or name not in ignored}


class StrictBody(RequestBody):
    """A JSON object of a request that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")
