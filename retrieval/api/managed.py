"""What an admin's request may manage: connections and presets."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.db.models import QuerySet

from corecube.access import Principal
from corecube.connections import stored_secrets
from corecube.connectors.kinds import KINDS
from corecube.errors import NotPermittedError, UnknownConnectionError
from corecube.models import Connection
from corecube.sanitise import storable
from retrieval.presets.catalog import preset_named
from retrieval.presets.preset import Preset

_NARROWED: Final = "A key that is narrowed, or that acts for somebody else, may not"
_WHO_MAY: Final = "An admin does it in the console, or with a key that is not narrowed."


class UnknownManagedConnectionError(UnknownConnectionError):
    """No connection with that slug can be managed by you."""

    param: ClassVar[str] = "slug"


def managed_connections(principal: Principal) -> QuerySet[Connection]:
    """Return the connections that the principal may manage.

    An admin manages all of them, an admin's key those within its narrowing, anyone else none.
    """
    connections = Connection.objects.select_related("compartment")
    if not principal.is_admin:
        return connections.none()
    key = principal.key
    if key is not None and (compartments := [compartment.pk for compartment in key.compartments.all()]):
        connections = connections.filter(compartment_id__in=compartments)
    if key is not None and key.max_sensitivity is not None:
        connections = connections.filter(sensitivity__lte=key.max_sensitivity)
    return connections


def may_manage(principal: Principal, connection: Connection) -> bool:
    """Return whether the principal may manage a connection as it is, stored or not, by compartment and sensitivity."""
    key = principal.key
    if key is None:
        return principal.is_admin
    compartments = {compartment.pk for compartment in key.compartments.all()}
    in_compartment = not compartments or connection.compartment_id in compartments
    is_low_enough = key.max_sensitivity is None or connection.sensitivity <= key.max_sensitivity
    return principal.is_admin and in_compartment and is_low_enough


def require_own_source(
    principal: Principal, connection: Connection, secrets: Mapping[str, str], *, before: Mapping[str, Any] | None = None
) -> None:
    """Raise NotPermittedError where a narrowed key or a forwarded request decides what a connection reads.

    They may do so neither with this machine's files nor with stored secrets that they did not send: both open what the
    key itself does not. `before` is the stored connection's config; as long as that stays, nothing is decided.
    """
    if not principal.is_narrowed or connection.config == before:
        return
    kind = KINDS.get(connection.kind)
    configs = (it for it in (connection.config, before) if isinstance(it, dict))
    if kind is not None and any(map(kind.reads_this_machine, configs)):
        raise NotPermittedError(f"{_NARROWED} let a connection read files of this server. {_WHO_MAY}")
    if before is not None and stored_secrets(connection) - secrets.keys():
        raise NotPermittedError(f"{_NARROWED} point stored secrets at another source: send them again. {_WHO_MAY}")


def managed_connection(principal: Principal, slug: str) -> Connection:
    """Return a connection that the principal may manage.

    Raises NotPermittedError for anyone but an admin, whatever the slug, and UnknownConnectionError.
    """
    if not principal.is_admin:
        raise NotPermittedError("Only an admin may do this.")
    connection = managed_connections(principal).filter(slug=storable(slug)).first()
    if connection is None:
        raise UnknownManagedConnectionError
    return connection


def pushable_connection(principal: Principal, slug: str) -> Connection:
    """Return a connection that the principal may push documents to.

    An admin may push to those that he may manage, anyone else only with a key that names the connection. Raises
    NotPermittedError for who may push nowhere, whatever the slug, and UnknownConnectionError.
    """
    if principal.is_admin:
        return managed_connection(principal, slug)
    # The right to push is the key's own; whom it acts for has none to match it.
    key = None if principal.is_forwarded else principal.key
    allowed = key.push_connections.all() if key else Connection.objects.none()
    if not allowed.exists():
        raise NotPermittedError("This needs an API key that may push documents.")
    connection = allowed.select_related("compartment").filter(slug=storable(slug)).first()
    if connection is None:
        raise UnknownManagedConnectionError("No connection with that slug takes documents from you.")
    return connection


def may_manage_presets(principal: Principal) -> bool:
    """Return whether the principal may see and change configurations.

    They hold for the whole installation, so an admin's key that is narrowed to a part of it may not.
    """
    key = principal.key
    is_narrowed = key is not None and (key.max_sensitivity is not None or bool(key.compartments.all()))
    return principal.is_admin and not is_narrowed


def managed_preset(principal: Principal, name: str) -> Preset:
    """Return a preset whose versions the principal may manage.

    Raises NotPermittedError for anyone who may manage none, whatever the name, and UnknownPresetError.
    """
    if not may_manage_presets(principal):
        raise NotPermittedError("Only an admin may do this, with a key that is not narrowed.")
    if not principal.may_use(name):
        raise NotPermittedError("This API key may not use that preset.")
    return preset_named(name)
