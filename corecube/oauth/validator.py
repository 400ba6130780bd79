"""What django-oauth-toolkit lacks: hashed codes, tokens that end with a reused code, and inactive users."""

from typing import Final
from uuid import UUID

from django.http import HttpRequest
from oauth2_provider.models import Grant, RefreshToken
from oauth2_provider.oauth2_backends import OAuthLibCore
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.common import Request

from corecube.models.access import key_digest

_UUID_DIGITS: Final = 32


class Core(OAuthLibCore):  # type: ignore[misc]  # the library has no types
    """Replaces a code by its digest, as it is stored, before anything else reads the request."""

    def extract_body(self, request: HttpRequest) -> list[tuple[str, str]]:
        """Return the parameters of the body."""
        return [(name, key_digest(value) if name == "code" else value) for name, value in super().extract_body(request)]


class Validator(OAuth2Validator):  # type: ignore[misc]  # the library has no types
    """Must run in a transaction: codes and refresh tokens are locked, so that each is used once."""

    def save_authorization_code(
        self, client_id: str, code: dict[str, str], request: Request, *_: object, **__: object
    ) -> None:
        """Store the digest of a code."""
        super().save_authorization_code(client_id, {**code, "code": key_digest(code["code"])}, request)

    def validate_code(
        self, client_id: str, code: str, client: object, request: Request, *_: object, **__: object
    ) -> bool:
        """Return whether a code is valid; for one that was used before, all its tokens are revoked."""
        Grant.objects.select_for_update().filter(code=code).first()
        if super().validate_code(client_id, code, client, request) and request.user.is_active:
            return True
        RefreshToken.revoke_family(_family(code))
        return False

    def validate_refresh_token(
        self, refresh_token: str, client: object, request: Request, *_: object, **__: object
    ) -> bool:
        """Return whether a refresh token is valid; the library revokes all tokens of a reused one."""
        RefreshToken.objects.select_for_update().filter(token_checksum=key_digest(refresh_token)).first()
        return bool(super().validate_refresh_token(refresh_token, client, request)) and request.user.is_active

    def _create_refresh_token(
        self, request: Request, code: str, access_token: object, previous: object
    ) -> RefreshToken:
        """Let the tokens of a code be one family, by which a reused code finds them."""
        token = super()._create_refresh_token(request, code, access_token, previous)
        if previous is None:
            token.token_family = _family(request.code)
            token.save(update_fields=["token_family"])
        return token


def _family(code: str) -> UUID:
    """Return the family of the tokens of a code, by its digest."""
    return UUID(hex=code[:_UUID_DIGITS])
