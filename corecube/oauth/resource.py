"""The protected resource /mcp: its address, its challenge, and who a token is for (RFC 9728, 8707 and 6750)."""

from typing import Final

from django.http import HttpRequest
from django.utils import timezone
from oauth2_provider.models import AccessToken

from corecube.access import Principal
from corecube.errors import NotAuthenticatedError
from corecube.models import User
from corecube.models.access import key_digest

SCOPE: Final = "mcp"  #: The only scope, which settings describe.
_METADATA_PATH: Final = "/.well-known/oauth-protected-resource/mcp"
_MAX_NAME: Final = 60


def resource_of(request: HttpRequest) -> str:
    """Return the resource for which this server issues tokens, by the host name of the request."""
    return request.build_absolute_uri("/mcp")


def challenge(request: HttpRequest) -> str:
    """Return the WWW-Authenticate header of a refused request: where a client finds out how to sign in."""
    error = 'error="invalid_token", ' if "Authorization" in request.headers else ""
    return f'Bearer {error}resource_metadata="{request.build_absolute_uri(_METADATA_PATH)}", scope="{SCOPE}"'


def principal_of_token(request: HttpRequest, token: str) -> Principal:
    """Return the user of an access token, as a signed-in browser has it; raise NotAuthenticatedError.

    The token must be for this resource and the user be active now.
    """
    found = (
        AccessToken.objects.select_related("user", "application")
        .filter(token_checksum=key_digest(token), expires__gt=timezone.now(), user__is_active=True)
        .exclude(application=None)
        .first()
    )
    if found is None or found.resource != [resource_of(request)] or not found.allow_scopes([SCOPE]):
        raise NotAuthenticatedError("The token is unknown, expired, revoked or for another resource.")
    user: User = found.user
    return Principal(user, client=str(found.application)[:_MAX_NAME])
