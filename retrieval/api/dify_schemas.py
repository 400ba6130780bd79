"""What Dify's external knowledge API sends and reads."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from corecube.sanitise import storable
from retrieval.api.request_body import RequestBody
from retrieval.engine.metadata_conditions import Condition, Conditions, Value

Operator = Literal[
    "contains",
    "not contains",
    "start with",
    "end with",
    "is",
    "is not",
    "in",
    "not in",
    "empty",
    "not empty",
    "=",
    "≠",
    ">",
    "<",
    "≥",
    "≤",
    "before",
    "after",
]
_Name = Annotated[str, StringConstraints(max_length=100)]
_Value = Annotated[str, StringConstraints(max_length=1000)]
_Number = Annotated[float, Field(allow_inf_nan=False)]


class RetrievalSetting(RequestBody):
    """How much is wanted."""

    top_k: int = Field(default=5, ge=1, le=100)
    score_threshold: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)


class ConditionIn(RequestBody):
    """One condition on a document's metadata."""

    name: _Name | Annotated[list[_Name], Field(min_length=1, max_length=20)] = Field(
        description="A field of the metadata; of several, one has to fulfil the condition."
    )
    comparison_operator: Operator
    value: _Value | _Number | Annotated[list[_Value], Field(max_length=100)] | None = None


class MetadataCondition(RequestBody):
    """Conditions on a document's metadata."""

    logical_operator: Literal["and", "or"] = "and"
    conditions: list[ConditionIn] = Field(default=[], max_length=20)


class FilterIn(ConditionIn):
    """A condition with nothing else beside it."""

    model_config = ConfigDict(extra="forbid")


class FiltersIn(MetadataCondition):
    """The same with nothing else beside them."""

    model_config = ConfigDict(extra="forbid")

    conditions: list[FilterIn] = Field(default=[], max_length=20)  # type: ignore[assignment]  # narrower


def conditions_of(given: MetadataCondition | None) -> Conditions | None:
    """Return conditions as the engine reads them, None without any."""
    if given is None or not given.conditions:
        return None
    each = tuple(Condition(_names(it), it.comparison_operator, _value(it)) for it in given.conditions)
    return Conditions(each, all_of=given.logical_operator == "and")


def _names(condition: ConditionIn) -> tuple[str, ...]:
    names = [condition.name] if isinstance(condition.name, str) else condition.name
    return tuple(map(storable, names))


def _value(condition: ConditionIn) -> Value:
    value = condition.value
    if isinstance(value, list):
        return tuple(map(storable, value))
    return storable(value) if isinstance(value, str) else value


class RetrievalIn(RequestBody):
    """A question to a knowledge base."""

    knowledge_id: str = Field(max_length=50, description="A connection's slug, or \"all\" for the key's whole scope.")
    query: str
    retrieval_setting: RetrievalSetting = Field(default_factory=RetrievalSetting)
    metadata_condition: MetadataCondition | None = None


class RecordOut(BaseModel):
    """A chunk that was found."""

    content: str
    score: float = Field(ge=0, le=1)
    title: str
    metadata: dict[str, str] = Field(description="The document's facts, and where the chunk comes from.")


class RetrievalOut(BaseModel):
    """What was found, best first."""

    records: list[RecordOut]


class DifyError(BaseModel):
    """Why nothing is answered: 1001 no bearer token, 1002 a wrong one, 2001 no such knowledge base, else the status."""

    error_code: int
    error_msg: str
