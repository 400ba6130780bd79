"""GET /api/v1/access/check: whether someone may see a document or a connection, and by which rule."""

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router

from corecube import audit
from corecube.access import Principal, scope_for, user_named
from corecube.api import principal_of
from corecube.errors import InvalidRequestError, NotFoundError, NotPermittedError
from corecube.models import Connection
from corecube.sanitise import storable
from corecube.scope import AccessScope, ExcludedConnection, Inclusion
from retrieval.api import access_schemas, schemas
from retrieval.api.managed import managed_connections
from retrieval.models import Document

router = Router(tags=["access"])


@router.get(
    "/access/check",
    response={200: access_schemas.AccessOut, **schemas.REFUSALS},
    by_alias=True,
    summary="Explain an access",
)
def check_access(
    request: HttpRequest,
    document: UUID | None = None,
    connection: Annotated[str, Query(max_length=50)] = "",
    user: Annotated[str, Query(max_length=150)] = "",
) -> access_schemas.AccessOut:
    """Return whether a document or a connection may be seen, and the rule that decides it.

    Asks for the key's own user, or as an admin for anyone, which is logged. What lies outside the scope of whoever is
    no admin does not exist for them.
    """
    principal = principal_of(request)
    asked = _asked_for(principal, storable(user))
    found = _connection(principal, document, storable(connection))
    if asked.user != principal.user:
        subject = {"document": str(document)} if document else {"connection": found.slug}
        audit.record("access.checked", actor=principal.user, subject=asked.user.username, **subject)
    return _explained(scope_for(asked, reveal_excluded=True), found)


def _asked_for(principal: Principal, username: str) -> Principal:
    """Return whose access is asked about. Raises NotPermittedError for anyone but an admin who names someone else."""
    if username in {"", principal.user.username}:
        return principal
    if not principal.is_admin:
        raise NotPermittedError("Only an admin may ask about someone else.")
    return Principal(user_named(username))


def _connection(principal: Principal, document: UUID | None, slug: str) -> Connection:
    """Return the connection that is asked about, or that the document is of.

    Raises NotFoundError for what the asker may not know of: outside the scope, and for an admin beyond what the key
    may manage.
    """
    if (document is None) == (not slug):
        raise InvalidRequestError("Either a document or a connection is needed.")
    scope = scope_for(principal)
    known = {*scope.connection_ids, *managed_connections(principal).values_list("pk", flat=True)}
    connections = Connection.objects.filter(pk__in=known)
    if document is None:
        found = connections.filter(slug=slug).first()
    else:
        of_document = Document.objects.filter(pk=document).values("connection_id")
        found = connections.filter(pk__in=of_document).first()
    if found is None:
        raise NotFoundError(f"No {'connection' if document is None else 'document'} like that is visible to you.")
    return found


def _explained(scope: AccessScope, connection: Connection) -> access_schemas.AccessOut:
    """Return the rule that decides; raise NotFoundError for a connection that is gone by now."""
    decided: list[Inclusion | ExcludedConnection] = [*scope.included, *scope.excluded]
    rule = next((it for it in decided if it.connection.id == connection.pk), None)
    if rule is None:
        raise NotFoundError("It has just been deleted.")
    return access_schemas.AccessOut(
        has_access=isinstance(rule, Inclusion),
        reason="allowed" if isinstance(rule, Inclusion) else rule.reason.value,
        rule=access_schemas.RuleOut(
            compartment=rule.connection.compartment,
            through=rule.via or None,
            clearance=None if rule.clearance is None else rule.clearance.name.lower(),
            sensitivity=rule.connection.sensitivity.name.lower(),
        ),
    )
