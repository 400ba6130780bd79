"""Create, change and delete compartments."""

import secrets
from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.text import slugify

from corecube import audit
from corecube.database import atomic_change
from corecube.errors import ConflictError, InvalidRequestError
from corecube.grants import Holder, set_clearance
from corecube.models import ApiKey, Compartment, User
from corecube.scope import Sensitivity

_SLUG_LENGTH: Final = 50
_NAME_LENGTH: Final = 120
_TAKEN: Final = "There is already a compartment with this or a similar name."


@dataclass(frozen=True, slots=True)
class Consequences:
    """The consequences of deleting a compartment, and the connections that prevent it."""

    connections: tuple[str, ...]  #: Names of its connections; they prevent the deletion.
    grants: int
    keys: int  #: Keys limited to it, which are revoked.


@atomic_change(_TAKEN)
def create_compartment(*, name: str, description: str, actor: User) -> Compartment:
    """Add a compartment without grants. Raises InvalidRequestError for a name without a new slug."""
    slug = slugify(name)[:_SLUG_LENGTH].strip("-_")
    if not slug:
        raise InvalidRequestError("The name must contain a letter or digit.")
    if Compartment.objects.filter(slug=slug).exists():
        raise InvalidRequestError(_TAKEN)
    made = Compartment.objects.create(slug=slug, name=name, description=description)
    audit.record("compartment.created", actor=actor, subject=slug, name=name)
    return made


def create_private_compartment(user: User, *, slug: str, name: str, description: str) -> Compartment:
    """Add a compartment that only this user can access, at every level; audited."""
    while Compartment.objects.filter(slug=slug).exists():
        slug = f"{slug}-{secrets.token_hex(3)}"
    made = Compartment.objects.create(slug=slug, name=name[:_NAME_LENGTH], description=description)
    audit.record("compartment.private_created", actor=user, subject=slug, name=made.name)
    holder = Holder.of(user)
    set_clearance(holder=holder, compartment=made, clearance=Sensitivity.RESTRICTED, expected=None, actor=user)
    return made


@atomic_change()
def change_compartment(compartment: Compartment, *, name: str, description: str, actor: User) -> None:
    """Change name and description of a compartment. The slug is permanent, as URLs and API clients use it."""
    if (compartment.name, compartment.description) == (name, description):
        return
    Compartment.objects.select_for_update().get(pk=compartment.pk)
    before = compartment.name
    compartment.name, compartment.description = name, description
    compartment.save(update_fields=["name", "description"])
    audit.record("compartment.changed", actor=actor, subject=compartment.slug, before=before, after=name)


def consequences(compartment: Compartment) -> Consequences:
    """Return the consequences of deleting a compartment."""
    return Consequences(
        connections=tuple(compartment.connections.order_by("name").values_list("name", flat=True)),
        grants=compartment.grants.count(),
        keys=_limited_keys(compartment).count(),
    )


@atomic_change()
def delete_compartment(compartment: Compartment, *, actor: User) -> Consequences:
    """Delete a compartment with its grants, and revoke the keys limited to it; return the consequences.

    Raises ConflictError while it has connections.
    """
    Compartment.objects.select_for_update().get(pk=compartment.pk)
    found = consequences(compartment)
    if found.connections:
        raise ConflictError(f"{compartment.name} still has connections: {', '.join(found.connections)}.")
    revoke_limited_keys(compartment, actor=actor)
    compartment.delete()
    audit.record(
        "compartment.deleted", actor=actor, subject=compartment.slug, grants=found.grants, keys_revoked=found.keys
    )
    return found


def revoke_limited_keys(compartment: Compartment, *, actor: User | None) -> None:
    """Revoke the keys limited to a compartment, which would have unlimited access after its deletion."""
    for key in _limited_keys(compartment):
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        audit.record(
            "key.revoked", actor=actor, subject=str(key), user=key.user.username, deleted_compartment=compartment.slug
        )


def _limited_keys(compartment: Compartment) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(compartments=compartment, revoked_at__isnull=True).select_related("user")
