"""Clients that users have connected by OAuth: list, disconnect, and delete what has ended."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone
from oauth2_provider.models import (
    AccessToken,
    Application,
    Grant,
    RefreshToken,
    clear_expired,
    refresh_token_expire_timedelta,
)

from corecube import audit
from corecube.errors import NotPermittedError
from corecube.models import User

_UNUSED: Final = timedelta(days=30)  #: After this time, a registered client that nobody connects is deleted.


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """A client that can act as a user."""

    client: Application
    user: User
    used_at: datetime  #: When it last got an access token, which it does hourly while it is used.
    expires_at: datetime  #: When it must ask again, unless it is used.


def connected_clients(users: QuerySet[User]) -> list[ConnectedClient]:
    """Return the clients that can act as these users, by user and name."""
    idle: timedelta = refresh_token_expire_timedelta()
    tokens = RefreshToken.objects.filter(revoked=None, user__in=users, access_token__expires__gt=timezone.now() - idle)
    rows = tokens.values("application", "user").annotate(
        used_at=Max("access_token__created"), expires_at=Max("access_token__expires")
    )
    clients = Application.objects.in_bulk({row["application"] for row in rows})
    people = User.objects.in_bulk({row["user"] for row in rows})
    found = [
        ConnectedClient(clients[it["application"]], people[it["user"]], it["used_at"], it["expires_at"] + idle)
        for it in rows
    ]
    return sorted(found, key=lambda it: (it.user.username, str(it.client), it.client.pk))


@transaction.atomic
def disconnect(client: Application, user: User, *, actor: User) -> None:
    """Revoke the tokens of a client for a user. Raises NotPermittedError for another user, unless an admin acts."""
    if user != actor and not actor.is_admin:
        raise NotPermittedError("Only an admin may disconnect someone else's client.")
    Grant.objects.filter(application=client, user=user).delete()
    for token in RefreshToken.objects.filter(application=client, user=user, revoked=None):
        token.revoke()
    AccessToken.objects.filter(application=client, user=user).delete()
    audit.record("client.disconnected", actor=actor, subject=str(client), user=user.username)


def forget_ended() -> None:
    """Delete expired tokens, and clients that registered themselves and that nobody connected lately."""
    clear_expired()
    registered = Application.objects.filter(
        registration_source=Application.RegistrationSource.DCR, created__lt=timezone.now() - _UNUSED
    )
    registered.filter(accesstoken=None, refreshtoken=None, grant=None).delete()
