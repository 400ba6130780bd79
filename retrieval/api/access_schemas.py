"""What `GET /api/v1/access/check` answers."""

from ninja import Schema
from pydantic import ConfigDict, Field


class RuleOut(Schema):
    """What decided: the levels that were compared, and the grant."""

    compartment: str
    through: str | None = Field(description="The grant's holder, such as `group finance-eu`; none without a grant.")
    clearance: str | None
    sensitivity: str


class AccessOut(Schema):
    """Whether it may be seen, and why."""

    model_config = ConfigDict(populate_by_name=True)

    has_access: bool = Field(serialization_alias="hasAccess")
    reason: str = Field(description="`allowed`, `no_grant`, `sensitivity`, `key_narrowing` or `disabled`.")
    rule: RuleOut
