"""Where a user's memory is: a push connection in a compartment of its own, granted to nobody else."""

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

#: What an agent remembers may come from anything that its user sees, so it is kept at the highest level.
SENSITIVITY: Final = Sensitivity.RESTRICTED
_MAX_NAME_LENGTH: Final = 120
_DESCRIPTION: Final = "What agents remember for this user. Nobody else is granted it."


class MemoryClosedError(NotPermittedError):
    """The memory is out of reach: narrowed away from this API key, switched off, or not granted any more."""

    code: ClassVar[str] = "memory_closed"


def memory_in(scope: AccessScope, user: User) -> Connection | None:
    """Return the user's memory where the scope holds it; None where it does not, or there is none yet."""
    found = Memory.objects.filter(user=user).select_related("connection__compartment").first()
    return found.connection if found is not None and scope.allows(found.connection_id) else None


def own_memory(principal: Principal) -> Connection:
    """Return the memory of the principal's user, made on first use; raise MemoryClosedError."""
    with transaction.atomic():
        if not Memory.objects.filter(user=principal.user).exists():
            _require_unnarrowed(principal)
            _make_once(principal.user)
    memory = memory_in(scope_for(principal), principal.user)
    if memory is None:
        raise MemoryClosedError
    return memory


def _require_unnarrowed(principal: Principal) -> None:
    """Raise MemoryClosedError for a key that would not reach the memory once it is made."""
    key = principal.key
    if key is None:
        return
    is_capped = key.max_sensitivity is not None and key.max_sensitivity < SENSITIVITY
    if principal.is_forwarded or is_capped or key.compartments.all():
        raise MemoryClosedError


def _make_once(user: User) -> None:
    """Make the user's memory, unless another request has done so meanwhile."""
    User.objects.select_for_update().get(pk=user.pk)
    if Memory.objects.filter(user=user).exists():
        return
    name = f"Memory of {user.username}"[:_MAX_NAME_LENGTH]
    slug = _free_slug(user)
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


def _free_slug(user: User) -> str:
    """Return a slug that neither a compartment nor a connection has."""
    slug = f"memory-{user.pk}"
    while Compartment.objects.filter(slug=slug).exists() or Connection.objects.filter(slug=slug).exists():
        slug = f"memory-{user.pk}-{secrets.token_hex(3)}"
    return slug
