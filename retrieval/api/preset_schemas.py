"""What the presets' API reads and writes."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from retrieval.api.request_body import RequestBody
from retrieval.engine.pipeline import HYBRID

#: Numbers by dotted name; the tunables' own declarations check them.
Numbers = Annotated[
    dict[str, Any], Field(max_length=200, json_schema_extra={"additionalProperties": {"type": "number"}})
]
Overrides = Annotated[
    Numbers,
    Field(description='The preset\'s numbers for this request alone: {"blend.dense": 0.5}. Costly ones only lower.'),
]

TopK = Annotated[int, Field(ge=1, le=100, description="Hits wanted.")]
Mode = Annotated[
    str,
    Field(
        default=HYBRID,
        max_length=40,
        description='"hybrid" runs every leg of the preset; "dense" searches vectors only, "fulltext" words only.',
    ),
]


Tier = Annotated[
    Literal["now", "async"],
    Field(
        default="now",
        description='"now" answers at once, without any language model. "async", for the preset helix, has a worker '
        "search for other ways to put the question too, which a language model writes; the result is fetched.",
    ),
]


class TunableOut(BaseModel):
    """A number of a preset's configuration, as it is declared, and its value in the live version."""

    name: str
    default: float
    low: float
    high: float
    unit: str
    help: str
    costs: bool = Field(description="Costs time or memory, so that a request can only lower it.")
    value: float


class PresetOut(BaseModel):
    """A preset; to an admin also its live version and its tunables."""

    name: str
    description: str
    version: int | None = Field(default=None, description="The live version; 0 for the shipped defaults. For admins.")
    tunables: list[TunableOut] | None = Field(default=None, description="For admins.")


class PresetsOut(BaseModel):
    """The presets that the principal may use."""

    presets: list[PresetOut]


class VersionOut(BaseModel):
    """A configuration of a preset."""

    number: int
    status: str = Field(description="draft, live or retired.")
    values: dict[str, float] = Field(description="What differs from the shipped defaults.")
    unfit: dict[str, str] = Field(description="Stored values that do not fit this release; their defaults serve.")
    note: str
    fingerprint: str = Field(description="Another one after each edit.")
    created_at: datetime | None
    created_by: str | None
    promoted_at: datetime | None
    promoted_by: str | None


class VersionsOut(BaseModel):
    """A preset's versions, newest first. The shipped defaults serve while none is live."""

    preset: str
    versions: list[VersionOut]


class DraftIn(RequestBody):
    """A draft's whole content: tunables that are left out have their defaults."""

    model_config = ConfigDict(extra="forbid")

    values: Numbers
    note: str = Field(default="", max_length=200, description="What it changes, and why.")
    replaces: str = Field(default="", description="Fingerprint of the draft that it replaces; empty for a new one.")


class PromotionIn(RequestBody):
    """Which version is to be live."""

    model_config = ConfigDict(extra="forbid")

    number: int = Field(ge=0, le=2**31 - 1, description="The draft or a retired version; 0 for the shipped defaults.")
    live: int | None = Field(default=None, description="Refused when another version than this is live by now.")
    fingerprint: str | None = Field(default=None, description="Refused when the version is another one by now.")


class PromotedOut(BaseModel):
    """Which version is live now."""

    preset: str
    version: int
