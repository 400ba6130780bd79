"""Making and changing connections: checked, sealed, in one transaction, and audited. Console and API both come here."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar, Final

from django.core.exceptions import ValidationError
from django.utils import timezone

from corecube import audit
from corecube.connectors.check import check_source
from corecube.connectors.kinds import KINDS, Secret
from corecube.connectors.problems import config_problems, normal_config
from corecube.connectors.types import Capability
from corecube.database import atomic_change
from corecube.errors import ConfigError, ConflictError, InvalidRequestError
from corecube.models import Connection, User
from corecube.scope import Sensitivity, TrustLevel
from corecube.secrets import seal, unseal

#: Slugs that stand for something else in the console's addresses.
RESERVED_SLUGS: Final = frozenset({"new"})
#: What anyone but its kind, its secrets and what syncs write may be changed in.
CHANGEABLE: Final = (
    *("name", "slug", "config", "compartment_id", "sensitivity", "trust", "source_type", "half_life_days"),
    *("freshness_basis", "language", "chunk_profile", "enrichment", "sync_every_minutes", "enabled"),
)
_TAKEN: Final = "Another connection has this slug."
_SIGN_IN_AGAIN: Final = "Enter it again: the connection now goes to another host."


class InvalidConnectionError(InvalidRequestError):
    """The connection cannot be as it was sent."""

    code: ClassVar[str] = "invalid_connection"

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        field, words = next(iter(self.problems.items()))
        self.param = field or None
        super().__init__(f"{field}: {words}" if field else words)


class CheckFailedError(InvalidRequestError):
    """The source does not allow what is needed."""

    code: ClassVar[str] = "check_failed"

    def __init__(self, capabilities: tuple[Capability, ...]) -> None:
        self.capabilities = capabilities
        super().__init__(next((it.message for it in capabilities if not it.ok), ""))


def problems_of(connection: Connection, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with a connection that is to be stored, by field; `secrets` are given and replace others."""
    return {**_row_problems(connection), **source_problems(connection, secrets)}


def source_problems(connection: Connection, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with its config and its secrets, by field; the empty field is what concerns no single one.

    Stored secrets do not follow the connection to another host, since whoever runs that would read them.
    """
    if unknown := secrets.keys() - {it.name for it in _secrets_of(connection.kind)}:
        return {min(unknown): "A connection of this kind has no such secret."}
    try:
        kept = secrets_with(connection, {})
    except ConfigError:
        kept = {}
    if kept and secrets_destination(connection) != secrets_destination(_stored(connection)):
        return {name: _SIGN_IN_AGAIN for name in kept if name not in secrets} or config_problems(connection, secrets)
    return config_problems(connection, {**kept, **secrets})


def secrets_with(connection: Connection, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the stored secrets with the given ones in their place, an empty one removed.

    Raises ConfigError when the stored ones cannot be opened and the given ones do not stand for all of them.
    """
    try:
        stored = unseal(connection.sealed_secrets)
    except ConfigError:
        if not secrets:
            raise
        stored = {}
    return {name: value for name, value in {**stored, **secrets}.items() if value}


def stored_secrets(connection: Connection) -> frozenset[str]:
    """Return the names of a connection's stored secrets; all of its kind where they cannot be opened any more."""
    try:
        return frozenset(unseal(connection.sealed_secrets))
    except ConfigError:
        return frozenset(it.name for it in _secrets_of(connection.kind))


def secrets_destination(connection: Connection) -> tuple[str, str]:
    """Return where a connection's secrets go: its kind, and the host with scheme and port, empty for none."""
    if connection.kind not in KINDS or not isinstance(connection.config, dict):
        return connection.kind, ""
    return connection.kind, KINDS[connection.kind].destination(connection.config)


def checked(connection: Connection, secrets: Mapping[str, str]) -> tuple[Capability, ...]:
    """Return what the source of a connection, stored or not, allows; raise InvalidConnectionError."""
    if problems := source_problems(connection, secrets):
        raise InvalidConnectionError(problems)
    try:
        return check_source(connection, secrets_with(connection, secrets))
    except ConfigError as error:
        raise InvalidConnectionError({"": str(error)}) from error


def require_checked(connection: Connection, secrets: Mapping[str, str]) -> None:
    """Raise CheckFailedError for a source that does not allow what is needed; InvalidConnectionError."""
    capabilities = checked(connection, secrets)
    if not all(it.ok for it in capabilities):
        raise CheckFailedError(capabilities)


def create_connection(connection: Connection, secrets: Mapping[str, str], *, actor: User | None) -> Connection:
    """Store a new connection with its secrets and return it; raise InvalidConnectionError, ConflictError."""
    _require_right(connection, secrets)
    connection.sealed_secrets = seal(secrets_with(connection, secrets))
    connection.config = normal_config(connection.kind, connection.config)
    with atomic_change(_TAKEN):
        connection.save()
        audit.record(
            "connection.created",
            actor=actor,
            subject=connection.slug,
            kind=connection.kind,
            secrets=sorted(name for name, value in secrets.items() if value),
            **_governed(connection),
        )
    return connection


def change_connection(
    connection: Connection, secrets: Mapping[str, str], *, actor: User | None, expected: Connection | None = None
) -> list[str]:
    """Store what was changed in a connection that was read before, and return the names of what did change.

    Of `secrets` an empty one is removed, and one that is not named stays. Raises InvalidConnectionError, NotFoundError
    when it is gone, and ConflictError when it is no longer as `expected`.
    """
    _require_right(connection, secrets)
    connection.config = normal_config(connection.kind, connection.config)
    with atomic_change(_TAKEN):
        before = Connection.objects.select_related("compartment").select_for_update(of=("self",)).get(pk=connection.pk)
        if expected is not None and _changes(expected, before):
            raise ConflictError
        changed = [*_changes(before, connection), *(f"secrets.{name}" for name in sorted(secrets))]
        if not changed:
            return []
        connection.sealed_secrets = seal(secrets_with(before, secrets)) if secrets else before.sealed_secrets
        is_rescheduled = before.sync_every_minutes != connection.sync_every_minutes
        connection.next_sync_at = _first_start(connection) if is_rescheduled else before.next_sync_at
        connection.save(update_fields=[*CHANGEABLE, "sealed_secrets", "next_sync_at"])
        audit.record("connection.changed", actor=actor, subject=connection.slug, **_told(before, connection, changed))
    return changed


def switch_connection(connection: Connection, *, enabled: bool, actor: User | None) -> None:
    """Enable or disable a connection; a disabled one is neither synced nor searched."""
    with atomic_change():
        if Connection.objects.filter(pk=connection.pk).exclude(enabled=enabled).update(enabled=enabled):
            verb = "enabled" if enabled else "disabled"
            audit.record(f"connection.{verb}", actor=actor, subject=connection.slug)
    connection.enabled = enabled


def _require_right(connection: Connection, secrets: Mapping[str, str]) -> None:
    if problems := problems_of(connection, secrets):
        raise InvalidConnectionError(problems)


def _row_problems(connection: Connection) -> dict[str, str]:
    """Return what is wrong with everything but the config."""
    problems = {}
    if connection.slug in RESERVED_SLUGS:
        problems["slug"] = "The console needs this one for itself."
    try:
        connection.full_clean(exclude=["config"])
    except ValidationError as error:
        problems |= {field: " ".join(words) for field, words in error.message_dict.items()}
    return problems


def _secrets_of(kind: str) -> tuple[Secret, ...]:
    return KINDS[kind].secrets if kind in KINDS else ()


def _stored(connection: Connection) -> Connection:
    return Connection.objects.filter(pk=connection.pk).first() or connection


def _changes(before: Connection, after: Connection) -> list[str]:
    """Return the names of the fields that differ, those of the config one by one."""
    fields = [name for name in CHANGEABLE if name != "config" and getattr(before, name) != getattr(after, name)]
    keys = sorted({*before.config, *after.config})
    return [*fields, *(f"config.{key}" for key in keys if before.config.get(key) != after.config.get(key))]


def _told(before: Connection, after: Connection, changed: list[str]) -> dict[str, object]:
    """Return what the audit log keeps of a change: every name, and the values of what decides who sees what."""
    old, new = _governed(before), _governed(after)
    differing = {name for name in old if old[name] != new[name]}
    told: dict[str, object] = {"changed": [name.removesuffix("_id") for name in changed]}
    if differing:
        told |= {"before": {name: old[name] for name in differing}, "after": {name: new[name] for name in differing}}
    return told


def _governed(connection: Connection) -> dict[str, object]:
    return {
        "slug": connection.slug,
        "compartment": connection.compartment.slug,
        "sensitivity": Sensitivity(connection.sensitivity).name.lower(),
        "trust": TrustLevel(connection.trust).name.lower(),
        "enabled": connection.enabled,
    }


def _first_start(connection: Connection) -> datetime | None:
    """Return when a schedule that was just set starts a sync for the first time: after one interval."""
    minutes = connection.sync_every_minutes
    return timezone.now() + timedelta(minutes=minutes) if minutes else None
