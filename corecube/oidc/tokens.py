"""Verifying ID tokens (OpenID Connect Core 1.0, section 3.1.3.7). Free of Django."""

import hmac
from collections.abc import Mapping
from typing import Any, Final

import jwt

from corecube.oidc.problems import UntrustedAnswerError

#: Signatures that are accepted, and the kind of key of each; whatever the token says itself.
_KEY_TYPES: Final = {"RS256": "RSA", "ES256": "EC"}
#: How far the provider's clock may be off, in seconds.
_LEEWAY: Final = 60
_MAX_SUBJECT_LENGTH: Final = 255


def verified_claims(token: str, jwks: Mapping[str, Any], *, issuer: str, client_id: str, nonce: str) -> dict[str, Any]:
    """Return what an ID token says.

    Raises UntrustedAnswerError for one that is not signed by a key of `jwks` with RS256 or ES256, is not this
    issuer's, not for this client, not of this sign-in, or over.
    """
    try:
        header = jwt.get_unverified_header(token)
        key = _key_for(header, jwks)
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[str(header["alg"])],
            audience=client_id,
            issuer=issuer,
            leeway=_LEEWAY,
            options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise UntrustedAnswerError from error
    _require_ours(claims, client_id, nonce)
    return claims


def _require_ours(claims: Mapping[str, Any], client_id: str, nonce: str) -> None:
    """Refuse a token of another sign-in, one made for others too, and a subject that cannot be kept."""
    given, subject, audience = claims.get("nonce"), claims["sub"], claims["aud"]
    is_same = isinstance(given, str) and bool(nonce) and hmac.compare_digest(given.encode(), nonce.encode())
    is_shared = isinstance(audience, list) and len(audience) > 1
    is_for_us = claims.get("azp", "" if is_shared else client_id) == client_id
    is_name = isinstance(subject, str) and 0 < len(subject) <= _MAX_SUBJECT_LENGTH and "\0" not in subject
    if not (is_same and is_for_us and is_name):
        raise UntrustedAnswerError


def _key_for(header: Mapping[str, Any], jwks: Mapping[str, Any]) -> jwt.PyJWK:
    """Return the one published key that can have signed; raise UntrustedAnswerError."""
    algorithm, name = header.get("alg"), header.get("kid")
    kind = _KEY_TYPES.get(str(algorithm))
    keys = jwks.get("keys")
    fitting = [
        key
        for key in (keys if isinstance(keys, list) else [])
        if isinstance(key, dict)
        and key.get("kty") == kind
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (name is None or key.get("kid") == name)
    ]
    if kind is None or len(fitting) != 1:
        raise UntrustedAnswerError
    return jwt.PyJWK(fitting[0], algorithm=str(algorithm))
