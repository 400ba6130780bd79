"""Request and response bodies of Dify's external knowledge API, and metadata filters."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from corecube.sanitise import storable
from retrieval.api.schemas import RequestBody
from retrieval.engine.metadata_conditions import Condition, Conditions, Value

_TextOperator = Literal["contains", "not contains", "start with", "end with", "is", "is not", "in", "not in"]
_OtherOperator = Literal["empty", "not empty", "=", "≠", ">", "<", "≥", "≤", "before", "after"]
Operator = Literal[_TextOperator, _OtherOperator]
_Name = Annotated[str, StringConstraints(max_length=100)]
_Value = Annotated[str, StringConstraints(max_length=1000)]
_Number = Annotated[float, Field(allow_inf_nan=False)]


class RetrievalSetting(RequestBody):
    """The number of hits and the score threshold."""

    top_k: int = Field(default=5, ge=1, le=100)
    score_threshold: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)


class ConditionIn(RequestBody):
    """One condition on a document's metadata."""

    name: _Name | Annotated[list[_Name], Field(min_length=1, max_length=20)] = Field(
        description="A metadata field, or several of which one must meet the condition."
    )
    comparison_operator: Operator
    value: _Value | _Number | Annotated[list[_Value], Field(max_length=100)] | None = None


class MetadataCondition(RequestBody):
    """Conditions on a document's metadata."""

    logical_operator: Literal["and", "or"] = "and"
    conditions: list[ConditionIn] = Field(default=[], max_length=20)


class FilterIn(ConditionIn):
    """A condition without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class FiltersIn(MetadataCondition):
    """Conditions without unknown fields."""

    model_config = ConfigDict(extra="forbid")

    conditions: list[FilterIn] = Field(default=[], max_length=20)  # type: ignore[assignment]  # narrower


def conditions_of(given: MetadataCondition | None) -> Conditions | None:
    """Return the engine's conditions, None for none."""
    if given is None or not given.conditions:
        return None
    return Conditions(tuple(map(_condition, given.conditions)), all_of=given.logical_operator == "and")


def _condition(given: ConditionIn) -> Condition:
    names = [given.name] if isinstance(given.name, str) else given.name
    value: Value
    match given.value:
        case list(texts):
            value = tuple(map(storable, texts))
        case str(text):
            value = storable(text)
        case number:
            value = number
    return Condition(tuple(map(storable, names)), given.comparison_operator, value)


class RetrievalIn(RequestBody):
    """A query to a knowledge base."""

    knowledge_id: str = Field(max_length=50, description='A connection\'s slug, or "all" for all that the key may see.')
    query: str
    retrieval_setting: RetrievalSetting = Field(default_factory=RetrievalSetting)
    metadata_condition: MetadataCondition | None = None


class RecordOut(BaseModel):
    """A hit."""

    content: str
    score: float = Field(ge=0, le=1)
    title: str
    metadata: dict[str, str] = Field(description="The document's metadata and the chunk's source.")


class RetrievalOut(BaseModel):
    """The hits, best first."""

    records: list[RecordOut]


class DifyError(BaseModel):
    """An error: 1001 no bearer token, 1002 an invalid one, 2001 unknown knowledge base, else the HTTP status."""

    error_code: int
    error_msg: str
