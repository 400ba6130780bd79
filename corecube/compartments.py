"""Making, changing and deleting compartments."""

from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.text import slugify

from corecube import audit
from corecube.database import atomic_change
from corecube.errors import ConflictError, InvalidRequestError
from corecube.models import ApiKey, Compartment, User

_SLUG_LENGTH = 50
_TAKEN: Final = "There is a compartment with this name, or one much like it."


@dataclass(frozen=True, slots=True)
class Consequences:
    """What deleting a compartment takes with it, and what stands in the way."""

    #: Names of the connections in it; while there are any it cannot be deleted.
    connections: tuple[str, ...]
    grants: int
    #: Keys that are narrowed to it and will be revoked.
    keys: int


@atomic_change(_TAKEN)
def create_compartment(*, name: str, description: str, actor: User) -> Compartment:
    """Add a compartment that nobody may see yet. Raises InvalidRequestError for a name that gives no new slug."""
    slug = slugify(name)[:_SLUG_LENGTH].strip("-_")
    if not slug:
        raise InvalidRequestError("The name needs a letter or a digit.")
    if Compartment.objects.filter(slug=slug).exists():
        raise InvalidRequestError(_TAKEN)
    made = Compartment.objects.create(slug=slug, name=name, description=description)
    audit.record("compartment.created", actor=actor, subject=slug, name=name)
    return made


@atomic_change()
def change_compartment(compartment: Compartment, *, name: str, description: str, actor: User) -> None:
    """Rename and describe a compartment. Its slug stays, so that no address and no program loses it."""
    if (compartment.name, compartment.description) == (name, description):
        return
    Compartment.objects.select_for_update().get(pk=compartment.pk)
    before = compartment.name
    compartment.name, compartment.description = name, description
    compartment.save(update_fields=["name", "description"])
    audit.record("compartment.changed", actor=actor, subject=compartment.slug, before=before, after=name)


def consequences(compartment: Compartment) -> Consequences:
    """Return what deleting a compartment would do."""
    return Consequences(
        connections=tuple(compartment.connections.order_by("name").values_list("name", flat=True)),
        grants=compartment.grants.count(),
        keys=_narrowed_keys(compartment).count(),
    )


@atomic_change()
def delete_compartment(compartment: Compartment, *, actor: User) -> Consequences:
    """Delete a compartment with its grants, and revoke the keys narrowed to it; return what went.

    Raises ConflictError while it has connections: their documents would be nobody's to grant.
    """
    Compartment.objects.select_for_update().get(pk=compartment.pk)
    gone = consequences(compartment)
    if gone.connections:
        raise ConflictError(f"{compartment.name} still has connections: {', '.join(gone.connections)}.")
    for key in _narrowed_keys(compartment):
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        audit.record(
            "key.revoked", actor=actor, subject=str(key), user=key.user.username, deleted_compartment=compartment.slug
        )
    compartment.delete()
    audit.record(
        "compartment.deleted", actor=actor, subject=compartment.slug, grants=gone.grants, keys_revoked=gone.keys
    )
    return gone


def _narrowed_keys(compartment: Compartment) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(compartments=compartment, revoked_at__isnull=True).select_related("user")
