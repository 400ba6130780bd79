"""Clean-up after a compartment or connection is deleted, or a membership ends."""

from contextlib import suppress
from functools import partial

from django.contrib.auth.models import Group
from django.db import Error, transaction
from django.db.models.signals import m2m_changed, post_delete, pre_delete
from django.dispatch import receiver

from corecube.compartments import revoke_limited_keys
from corecube.connectors.setup import remove_folder, state_folder
from corecube.connectors.upload import remove_uploads
from corecube.database import release_connection
from corecube.health import stopping
from corecube.models import Compartment, Connection, OidcMembership, User
from corecube.same_key import forget_key


@receiver(pre_delete, sender=Compartment)
def revoke_narrowed_keys(instance: Compartment, **_: object) -> None:
    """Revoke the keys limited to the compartment."""
    revoke_limited_keys(instance, actor=None)


@receiver(post_delete, sender=Connection)
def remove_files_with_connection(instance: Connection, **_: object) -> None:
    """Remove the uploads and the connector state of a connection after the commit."""
    transaction.on_commit(partial(remove_uploads, instance.pk))
    transaction.on_commit(partial(remove_folder, state_folder(instance)))


@receiver(stopping)
def forget_key_of_process(**_: object) -> None:
    """Note that a web server ends, so that one with another key may start."""
    with suppress(Error):
        forget_key()
    release_connection()


@receiver(m2m_changed, sender=User.groups.through)
def unmark_memberships(
    instance: User | Group, action: str, pk_set: set[int] | None, *, reverse: bool, **_: object
) -> None:
    """Remove the mark of a membership by sign-in when it ends, so that a later manual one is permanent."""
    if action not in {"post_remove", "post_clear"}:
        return
    field, members = ("group", "user__in") if reverse else ("user", "group__in")
    marks = OidcMembership.objects.filter(**{field: instance.pk})
    (marks if pk_set is None else marks.filter(**{members: pk_set})).delete()
