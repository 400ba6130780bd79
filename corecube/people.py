"""Users: making them, letting them in and shutting them out, and their groups."""

from collections.abc import Collection

from django.contrib.auth.models import Group
from django.contrib.auth.tokens import default_token_generator
from django.contrib.sessions.models import Session
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from corecube import audit
from corecube.changing import changing
from corecube.errors import InvalidRequestError, NotPermittedError
from corecube.models import User
from corecube.reach import ReachChange, reach_change, reach_of


@changing("Somebody has this username already.")
def create_user(
    *, username: str, first_name: str = "", last_name: str = "", password: str | None = None, actor: User
) -> User:
    """Add a user who may see nothing yet. Without a password they cannot sign in until they have set one.

    Raises ConflictError for a username that somebody has.
    """
    user = User.objects.create_user(username, password=password, first_name=first_name, last_name=last_name)
    audit.record("user.created", actor=actor, subject=username, has_password=password is not None)
    return user


@changing()
def rename_user(user: User, *, first_name: str, last_name: str, actor: User) -> None:
    """Change the name that a user goes by; the username stays."""
    if (user.first_name, user.last_name) == (first_name, last_name):
        return
    User.objects.select_for_update().get(pk=user.pk)
    user.first_name, user.last_name = first_name, last_name
    user.save(update_fields=["first_name", "last_name"])
    audit.record("user.renamed", actor=actor, subject=user.username)


@changing()
def set_active(user: User, *, is_active: bool, actor: User) -> None:
    """Let a user in again, or shut them out: signed out everywhere at once, and their API keys stop.

    Raises NotPermittedError for oneself, and for the last admin.
    """
    found = _changeable(user, actor, ends_admin=not is_active)
    if found.is_active == is_active:
        return
    found.is_active = is_active
    found.save(update_fields=["is_active"])
    if not is_active:
        _end_sessions(found)
    audit.record("user.activated" if is_active else "user.deactivated", actor=actor, subject=found.username)


@changing()
def set_admin(user: User, *, is_admin: bool, actor: User) -> None:
    """Open the console and the administration to a user, or close them.

    Raises NotPermittedError for oneself, and for the last admin.
    """
    found = _changeable(user, actor, ends_admin=not is_admin)
    if found.is_staff == is_admin:
        return
    found.is_staff = found.is_superuser = is_admin
    found.save(update_fields=["is_staff", "is_superuser"])
    # What was decided by hand holds until somebody decides otherwise.
    found.oidc_identities.update(gives_admin=False)
    audit.record("user.admin_given" if is_admin else "user.admin_taken", actor=actor, subject=found.username)


@changing()
def set_groups(user: User, *, groups: Collection[Group], actor: User) -> ReachChange:
    """Put a user into exactly these groups; return what they came to see and lost sight of."""
    same = User.objects.filter(pk=user.pk)
    User.objects.select_for_update().get(pk=user.pk)
    before, seen = set(user.groups.all()), reach_of(same)
    user.groups.set(groups)
    added, removed = set(groups) - before, before - set(groups)
    if not added and not removed:
        return ReachChange()
    audit.record(
        "user.groups_changed",
        actor=actor,
        subject=user.username,
        added=sorted(group.name for group in added),
        removed=sorted(group.name for group in removed),
    )
    return reach_change(seen, reach_of(same))


@changing()
def password_link(user: User, *, actor: User) -> str:
    """Return the path at which a user can set a password, once, for as long as PASSWORD_RESET_TIMEOUT says.

    It ends when the password is changed or the user signs in. Raises InvalidRequestError for who may not sign in.
    """
    if not user.is_active:
        raise InvalidRequestError("Who is not active cannot sign in, and needs no password.")
    audit.record("user.password_link", actor=actor, subject=user.username)
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("set_password", args=[uid, default_token_generator.make_token(user)])


def _changeable(user: User, actor: User, *, ends_admin: bool) -> User:
    """Return the user as the database has them, with all admins locked, so that no two remove each other."""
    if user.pk == actor.pk:
        raise NotPermittedError("Nobody can do this to themselves; another admin can.")
    admins = User.objects.select_for_update().filter(is_active=True, is_staff=True).order_by("pk")
    ids = {admin.pk for admin in admins}
    if actor.pk not in ids:
        raise NotPermittedError("Only an admin may do this.")
    if ends_admin and ids == {user.pk}:
        raise NotPermittedError("This is the last admin.")
    return User.objects.select_for_update().get(pk=user.pk)


def _end_sessions(user: User) -> None:
    """End a user's sessions, so that none is taken up again should they be let in once more."""
    sessions = Session.objects.filter(expire_date__gt=timezone.now())
    own = [it.pk for it in sessions.iterator() if it.get_decoded().get("_auth_user_id") == str(user.pk)]
    Session.objects.filter(pk__in=own).delete()
