"""Which connections and presets a request may manage."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.db.models import QuerySet

from corecube.access import Principal
from corecube.connections import stored_secrets
from corecube.connectors.kinds import KINDS
from corecube.database import first_or
from corecube.errors import NotPermittedError, UnknownConnectionError
from corecube.models import Connection, User
from corecube.sanitise import storable
from retrieval.presets.catalog import preset_named
from retrieval.presets.preset import Preset

_NARROWED: Final = "A narrowed key, or a key that acts for another user, may not"
_WHO_MAY: Final = "An admin can do this in the console or with a key that is not narrowed."


class UnknownManagedConnectionError(UnknownConnectionError):
    """No connection with that slug can be managed by you."""

    param: ClassVar[str] = "slug"


def require_admin(principal: Principal) -> Principal:
    """Return the principal; raise NotPermittedError for anyone but an admin."""
    if not principal.is_admin:
        raise NotPermittedError("Only an admin may do this.")
    return principal


def managed_connections(principal: Principal) -> QuerySet[Connection]:
    """Return the connections that the principal may manage.

    Admins manage all of them, an admin's key those within its limits, other users none.
    """
    connections = Connection.objects.listed().select_related("compartment")
    if not principal.is_admin:
        return connections.none()
    key = principal.key
    if key is not None and (compartments := [compartment.pk for compartment in key.compartments.all()]):
        connections = connections.filter(compartment_id__in=compartments)
    if key is not None and key.max_sensitivity is not None:
        connections = connections.filter(sensitivity__lte=key.max_sensitivity)
    return connections


def may_manage(principal: Principal, connection: Connection) -> bool:
    """Return whether the principal may manage a connection, stored or not, by its compartment and sensitivity."""
    key = principal.key
    if key is None or not principal.is_admin:
        return principal.is_admin
    compartments = {compartment.pk for compartment in key.compartments.all()}
    in_compartment = not compartments or connection.compartment_id in compartments
    return in_compartment and (key.max_sensitivity is None or connection.sensitivity <= key.max_sensitivity)


def require_own_source(
    principal: Principal, connection: Connection, secrets: Mapping[str, str], *, before: Mapping[str, Any] | None = None
) -> None:
    """Raise NotPermittedError if a narrowed key or a forwarded request changes what a connection reads.

    They may point it neither at files of this server nor at another source with stored secrets that they did not send:
    both give more access than the key has. `before` is the stored connection's config; unchanged, it is allowed.
    """
    if not principal.is_narrowed or connection.config == before:
        return
    kind = KINDS.get(connection.kind)
    configs = (it for it in (connection.config, before) if isinstance(it, dict))
    if kind is not None and any(map(kind.reads_local_files, configs)):
        raise NotPermittedError(f"{_NARROWED} let a connection read files of this server. {_WHO_MAY}")
    if before is not None and stored_secrets(connection) - secrets.keys():
        raise NotPermittedError(f"{_NARROWED} use stored secrets for another source: send them again. {_WHO_MAY}")


def managed_connection(principal: Principal, slug: str) -> Connection:
    """Return a connection that the principal may manage.

    Raises NotPermittedError for anyone but an admin, whatever the slug, and UnknownConnectionError.
    """
    managed = managed_connections(require_admin(principal))
    return first_or(UnknownManagedConnectionError(), managed.filter(slug=storable(slug)))


def pushable_connection(principal: Principal, slug: str) -> Connection:
    """Return a connection that the principal may push documents to.

    Admins may push to those that they manage, other users only with a key that names the connection. Raises
    NotPermittedError for a principal without any push right, whatever the slug, and UnknownConnectionError.
    """
    if principal.is_admin:
        return managed_connection(principal, slug)
    # The right to push belongs to the key, so a forwarded user does not inherit it.
    key = None if principal.is_forwarded else principal.key
    allowed = key.push_connections.all() if key else Connection.objects.none()
    if not allowed.exists():
        raise NotPermittedError("This needs an API key that may push documents.")
    unknown = UnknownManagedConnectionError("You cannot push documents to a connection with that slug.")
    return first_or(unknown, allowed.select_related("compartment").filter(slug=storable(slug)))


def may_manage_presets(principal: Principal) -> bool:
    """Return whether the principal may see and change configurations.

    They apply to the entire installation, so an admin's narrowed key may not.
    """
    key = principal.key
    is_narrowed = key is not None and (key.max_sensitivity is not None or bool(key.compartments.all()))
    return principal.is_admin and not is_narrowed


def installation_admin(principal: Principal) -> User:
    """Return the admin behind a request; raise NotPermittedError for other users and for a narrowed key."""
    if not may_manage_presets(principal):
        raise NotPermittedError("Only an admin may do this, with a key that is not narrowed.")
    return principal.user


def managed_preset(principal: Principal, name: str) -> Preset:
    """Return a preset with versions that the principal may manage.

    Raises NotPermittedError for a principal who may manage none, whatever the name, and UnknownPresetError.
    """
    installation_admin(principal)
    if not principal.may_use(name):
        raise NotPermittedError("This API key may not use that preset.")
    return preset_named(name)
