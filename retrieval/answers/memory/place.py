"""A user's memory: a push connection in a separate compartment, granted only to that user."""

import secrets
from typing import ClassVar, Final

from django.db import transaction

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.connections import create_connection
from corecube.errors import NotPermittedError
from corecube.grants import Holder, set_clearance
from corecube.models import Compartment, Connection, User
from corecube.scope import AccessScope, FreshnessBasis, Sensitivity, TrustLevel
from retrieval.models import Memory

#: Items may come from any document of the user, so the memory has the highest level.
SENSITIVITY: Final = Sensitivity.RESTRICTED
_MAX_NAME_LENGTH: Final = 120
_DESCRIPTION: Final = "Memory of agents for this user. Other users have no access."


class MemoryClosedError(NotPermittedError):
    """The memory is not accessible: outside the limits of this API key, disabled, or no longer granted."""

    code: ClassVar[str] = "memory_closed"


def memory_in(scope: AccessScope, user: User) -> Connection | None:
    """Return the user's memory; None if it is outside the scope or does not exist yet."""
    found = Memory.objects.filter(user=user).select_related("connection__compartment").first()
    return found.connection if found is not None and scope.allows(found.connection_id) else None


def own_memory(principal: Principal) -> Connection:
    """Return the memory of the principal's user, created on first use; raise MemoryClosedError."""
    with transaction.atomic():
        if not Memory.objects.filter(user=principal.user).exists():
            _require_unnarrowed(principal)
            _create(principal.user)
    memory = memory_in(scope_for(principal), principal.user)
    if memory is None:
        raise MemoryClosedError
    return memory


def _require_unnarrowed(principal: Principal) -> None:
    """Raise MemoryClosedError for a key that could not access the new memory."""
    key = principal.key
    if key is None:
        return
    is_capped = key.max_sensitivity is not None and key.max_sensitivity < SENSITIVITY
    if principal.is_forwarded or is_capped or key.compartments.all():
        raise MemoryClosedError


def _create(user: User) -> None:
    User.objects.select_for_update().get(pk=user.pk)
    if Memory.objects.filter(user=user).exists():
        return
    name = f"Memory of {user.username}"[:_MAX_NAME_LENGTH]
    slug = f"memory-{user.pk}"
    while Compartment.objects.filter(slug=slug).exists() or Connection.objects.filter(slug=slug).exists():
        slug = f"memory-{user.pk}-{secrets.token_hex(3)}"
    compartment = Compartment.objects.create(slug=slug, name=name, description=_DESCRIPTION)
    audit.record("compartment.created", actor=user, subject=slug, name=name)
    set_clearance(holder=Holder.of(user), compartment=compartment, clearance=SENSITIVITY, expected=None, actor=user)
    connection = Connection(
        slug=slug,
        name=name,
        kind="push",
        compartment=compartment,
        sensitivity=SENSITIVITY,
        trust=TrustLevel.VOLATILE,
        freshness_basis=FreshnessBasis.MODIFIED,
    )
    Memory.objects.create(user=user, connection=create_connection(connection, {}, actor=user))
