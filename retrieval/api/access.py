"""GET /api/v1/access/check: whether a user may see a document or a connection, and the rule that decides."""

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field

from corecube import audit
from corecube.access import Principal, scope_for, user_named
from corecube.api import principal_of
from corecube.database import first_or
from corecube.errors import InvalidRequestError, NotFoundError, NotPermittedError
from corecube.models import Connection
from corecube.sanitise import storable
from corecube.scope import AccessScope, ExcludedConnection, Inclusion
from retrieval.api.managed import managed_connections
from retrieval.api.schemas import REFUSALS
from retrieval.models import Document

router = Router(tags=["access"])


class RuleOut(Schema):
    """The rule: the compared levels, and the grant."""

    compartment: str
    through: str | None = Field(description="The grant's holder, such as `group finance-eu`; null without a grant.")
    clearance: str | None
    sensitivity: str


class AccessOut(Schema):
    """Whether the user has access, and why."""

    model_config = ConfigDict(populate_by_name=True)

    has_access: bool = Field(serialization_alias="hasAccess")
    reason: str = Field(description="`allowed`, `no_grant`, `sensitivity`, `key_narrowing` or `disabled`.")
    rule: RuleOut


@router.get("/access/check", response={200: AccessOut, **REFUSALS}, by_alias=True, summary="Check access")
def check_access(
    request: HttpRequest,
    document: UUID | None = None,
    connection: Annotated[str, Query(max_length=50)] = "",
    user: Annotated[str, Query(max_length=150)] = "",
) -> AccessOut:
    """Return whether a user may see a document or a connection, and the rule that decides.

    Admins can check any user; the check is recorded in the audit log. For other users, documents and connections
    outside their scope do not exist.
    """
    principal = principal_of(request)
    username, checked = storable(user), principal
    if username not in {"", principal.user.username}:
        if not principal.is_admin:
            raise NotPermittedError("Only an admin may check the access of another user.")
        checked = Principal(user_named(username))
    found = _connection(principal, document, storable(connection))
    if checked.user != principal.user:
        subject = {"document": str(document)} if document else {"connection": found.slug}
        audit.record("access.checked", actor=principal.user, subject=checked.user.username, **subject)
    return _explained(scope_for(checked, reveal_excluded=True), found)


def _connection(principal: Principal, document: UUID | None, slug: str) -> Connection:
    """Return the connection with that slug, or the document's connection.

    Raises NotFoundError for a connection that the principal can neither see nor manage.
    """
    if (document is None) == (not slug):
        raise InvalidRequestError("Send either a document or a connection.")
    scope = scope_for(principal)
    known = {*scope.connection_ids, *managed_connections(principal).values_list("pk", flat=True)}
    connections = Connection.objects.filter(pk__in=known)
    if document is None:
        return first_or(NotFoundError("You cannot see such a connection."), connections.filter(slug=slug))
    of_document = Document.objects.filter(pk=document).values("connection_id")
    return first_or(NotFoundError("You cannot see such a document."), connections.filter(pk__in=of_document))


def _explained(scope: AccessScope, connection: Connection) -> AccessOut:
    """Return the rule that decides; raise NotFoundError for a connection that was just deleted."""
    rules: list[Inclusion | ExcludedConnection] = [*scope.included, *scope.excluded]
    rule = next((it for it in rules if it.connection.id == connection.pk), None)
    if rule is None:
        raise NotFoundError("It was just deleted.")
    return AccessOut(
        has_access=isinstance(rule, Inclusion),
        reason="allowed" if isinstance(rule, Inclusion) else rule.reason.value,
        rule=RuleOut(
            compartment=rule.connection.compartment,
            through=rule.via or None,
            clearance=None if rule.clearance is None else rule.clearance.name.lower(),
            sensitivity=rule.connection.sensitivity.name.lower(),
        ),
    )
