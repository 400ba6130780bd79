"""Create and change connections for console and API: validated, with encrypted secrets, and audited."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from django.core.exceptions import ValidationError
from django.utils import timezone

from corecube import audit
from corecube.connectors.check import check_source, config_problems, normal_config
from corecube.connectors.kinds import KINDS, Secret
from corecube.connectors.types import Capability
from corecube.database import atomic_change
from corecube.errors import ConfigError, ConflictError, InvalidFieldsError, InvalidRequestError
from corecube.models import Connection, User
from corecube.scope import Sensitivity, TrustLevel
from corecube.secrets import seal, unseal

RESERVED_SLUGS: Final = frozenset({"new"})  #: Slugs that are used in URLs of the console.
#: Fields that can be changed; not the kind, secrets, and fields written by syncs.
CHANGEABLE: Final = (
    *("name", "slug", "config", "compartment_id", "sensitivity", "trust", "source_type", "half_life_days"),
    *("freshness_basis", "language", "chunk_profile", "enrichment", "sync_every_minutes", "enabled"),
)
_TAKEN: Final = "Another connection has this slug."
_ENTER_AGAIN: Final = "Enter it again, because the host has changed."


class InvalidConnectionError(InvalidFieldsError, code="invalid_connection"):
    """The connection is not valid."""


class CheckFailedError(InvalidRequestError, code="check_failed"):
    """The check of the source failed."""

    def __init__(self, capabilities: tuple[Capability, ...]) -> None:
        self.capabilities = capabilities
        super().__init__(next((it.message for it in capabilities if not it.ok), ""))


def problems_of(connection: Connection, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the problems of a connection by field; the given `secrets` replace stored ones."""
    return {**_row_problems(connection), **source_problems(connection, secrets)}


def source_problems(connection: Connection, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the problems of config and secrets by field, empty for general ones.

    Stored secrets are not sent to another host, whose operator could read them.
    """
    if unknown := secrets.keys() - {it.name for it in _secrets_of(connection.kind)}:
        return {min(unknown): "Connections of this kind have no such secret."}
    try:
        stored = secrets_with(connection, {})
    except ConfigError:
        stored = {}
    row = Connection.objects.filter(pk=connection.pk).first() if stored else None
    if row is not None and secrets_destination(connection) != secrets_destination(row):
        return {name: _ENTER_AGAIN for name in stored if name not in secrets} or config_problems(connection, secrets)
    return config_problems(connection, {**stored, **secrets})


def secrets_with(connection: Connection, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the stored secrets updated with the given ones; an empty value removes one.

    Raises ConfigError if the stored ones cannot be decrypted and none are given.
    """
    try:
        stored = unseal(connection.sealed_secrets)
    except ConfigError:
        if not secrets:
            raise
        stored = {}
    return {name: value for name, value in {**stored, **secrets}.items() if value}


def stored_secrets(connection: Connection) -> frozenset[str]:
    """Return the names of the stored secrets; all of the kind if they cannot be decrypted."""
    try:
        return frozenset(unseal(connection.sealed_secrets))
    except ConfigError:
        return frozenset(it.name for it in _secrets_of(connection.kind))


def secrets_destination(connection: Connection) -> tuple[str, str]:
    """Return the destination of the secrets: kind, and host with scheme and port, empty for none."""
    if connection.kind not in KINDS or not isinstance(connection.config, dict):
        return connection.kind, ""
    return connection.kind, KINDS[connection.kind].destination(connection.config)


def checked(connection: Connection, secrets: Mapping[str, str]) -> tuple[Capability, ...]:
    """Check the source of a connection and return the results; raise InvalidConnectionError."""
    if problems := source_problems(connection, secrets):
        raise InvalidConnectionError(problems)
    try:
        return check_source(connection, secrets_with(connection, secrets))
    except ConfigError as error:
        raise InvalidConnectionError({"": str(error)}) from error


def require_checked(connection: Connection, secrets: Mapping[str, str]) -> None:
    """Check the source; raise CheckFailedError or InvalidConnectionError."""
    capabilities = checked(connection, secrets)
    if not all(it.ok for it in capabilities):
        raise CheckFailedError(capabilities)


def create_connection(connection: Connection, secrets: Mapping[str, str], *, actor: User | None) -> Connection:
    """Store a new connection with its secrets and return it; raise InvalidConnectionError, ConflictError."""
    _require_valid(connection, secrets)
    connection.sealed_secrets = seal(secrets_with(connection, secrets))
    connection.config = normal_config(connection.kind, connection.config)
    with atomic_change(_TAKEN):
        connection.save()
        audit.record(
            "connection.private_created" if connection.is_attached else "connection.created",
            actor=actor,
            subject=connection.slug,
            kind=connection.kind,
            secrets=sorted(name for name, value in secrets.items() if value),
            **_access_fields(connection),
        )
    return connection


def change_connection(
    connection: Connection, secrets: Mapping[str, str], *, actor: User | None, expected: Connection | None = None
) -> list[str]:
    """Store a changed connection, and return the names of the changed fields.

    An empty value in `secrets` removes that secret; others are unchanged. Raises InvalidConnectionError, NotFoundError
    for a deleted connection, and ConflictError if the stored values are not the `expected` ones.
    """
    _require_valid(connection, secrets)
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
        minutes = connection.sync_every_minutes
        next_start = timezone.now() + timedelta(minutes=minutes) if minutes else None
        connection.next_sync_at = next_start if is_rescheduled else before.next_sync_at
        connection.save(update_fields=[*CHANGEABLE, "sealed_secrets", "next_sync_at"])
        audit.record(
            "connection.changed", actor=actor, subject=connection.slug, **_audit_details(before, connection, changed)
        )
    return changed


def switch_connection(connection: Connection, *, enabled: bool, actor: User | None) -> None:
    """Enable or disable a connection; a disabled one is neither synced nor searched."""
    with atomic_change():
        if Connection.objects.filter(pk=connection.pk).exclude(enabled=enabled).update(enabled=enabled):
            verb = "enabled" if enabled else "disabled"
            audit.record(f"connection.{verb}", actor=actor, subject=connection.slug)
    connection.enabled = enabled


def _require_valid(connection: Connection, secrets: Mapping[str, str]) -> None:
    if problems := problems_of(connection, secrets):
        raise InvalidConnectionError(problems)


def _row_problems(connection: Connection) -> dict[str, str]:
    problems = {}
    if connection.slug in RESERVED_SLUGS:
        problems["slug"] = "This slug is reserved."
    try:
        connection.full_clean(exclude=["config"])
    except ValidationError as error:
        problems |= {field: " ".join(messages) for field, messages in error.message_dict.items()}
    return problems


def _secrets_of(kind: str) -> tuple[Secret, ...]:
    return KINDS[kind].secrets if kind in KINDS else ()


def _changes(before: Connection, after: Connection) -> list[str]:
    """Return the names of the changed fields, with each changed key of the config."""
    fields = [name for name in CHANGEABLE if name != "config" and getattr(before, name) != getattr(after, name)]
    keys = sorted({*before.config, *after.config})
    return [*fields, *(f"config.{key}" for key in keys if before.config.get(key) != after.config.get(key))]


def _audit_details(before: Connection, after: Connection, changed: list[str]) -> dict[str, object]:
    """Return the audit details of a change: all names, and the values of the fields that control access."""
    old, new = _access_fields(before), _access_fields(after)
    differing = {name for name in old if old[name] != new[name]}
    details: dict[str, object] = {"changed": [name.removesuffix("_id") for name in changed]}
    if differing:
        details |= {"before": {name: old[name] for name in differing}, "after": {name: new[name] for name in differing}}
    return details


def _access_fields(connection: Connection) -> dict[str, object]:
    return {
        "slug": connection.slug,
        "compartment": connection.compartment.slug,
        "sensitivity": Sensitivity(connection.sensitivity).name.lower(),
        "trust": TrustLevel(connection.trust).name.lower(),
        "enabled": connection.enabled,
    }
