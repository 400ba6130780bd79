"""The base of what the APIs and tools read as JSON."""

from collections.abc import Mapping

from pydantic import BaseModel, model_validator


class RequestBody(BaseModel):
    """A JSON object of a request; null for an optional field is the same as leaving the field out.

    Clients that serialise every field they know send null for those without a value. A field whose default is None
    keeps its null, since in a change null may differ from nothing: it removes a value.
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
        if field is None or field.is_required():
            return False
        return field.get_default(call_default_factory=True, validated_data={}) is not None
