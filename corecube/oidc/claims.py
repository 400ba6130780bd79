"""Verifying ID tokens and reading their claims. Free of Django."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt

from corecube.oidc.problems import UntrustedAnswerError

_MAX_NAME_LENGTH: Final = 150
_MAX_MAIL_LENGTH: Final = 254
_MAX_GROUP_LENGTH: Final = 500
_MAX_GROUPS: Final = 10_000
_KEY_TYPES: Final = {"RS256": "RSA", "ES256": "EC"}  #: Accepted signature algorithms with their key types.
_LEEWAY: Final = 60  #: Tolerated clock difference in seconds.
_MAX_SUBJECT_LENGTH: Final = 255


@dataclass(frozen=True, slots=True)
class Person:
    """A person authenticated by the provider."""

    issuer: str
    subject: str
    username: str  #: The preferred username; empty if unknown.
    first_name: str
    last_name: str
    mail: str  #: Empty unless the provider has verified it.
    groups: frozenset[str]


def person_of(claims: Mapping[str, Any], *, groups_claim: str) -> Person:
    """Return the person in verified claims; missing or invalid values are empty."""
    return Person(
        issuer=claims["iss"],
        subject=claims["sub"],
        username=_text(claims, "preferred_username", _MAX_NAME_LENGTH),
        first_name=_text(claims, "given_name", _MAX_NAME_LENGTH),
        last_name=_text(claims, "family_name", _MAX_NAME_LENGTH),
        mail=_verified_mail(claims),
        groups=groups_of(claims, groups_claim),
    )


def groups_of(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """Return the values of the groups claim: a list of strings or one string.

    A name with dots is the name of a claim or else a path: "realm_access.roles".
    """
    found: Any = claims.get(name)
    if found is None:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    values = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    texts = (value for value in values[:_MAX_GROUPS] if isinstance(value, str))
    return frozenset(text for text in texts if 0 < len(text) <= _MAX_GROUP_LENGTH and "\0" not in text)


def _verified_mail(claims: Mapping[str, Any]) -> str:
    verified = claims.get("email_verified")
    is_verified = verified is True or verified == "true"
    mail = _text(claims, "email", _MAX_MAIL_LENGTH)
    return mail if is_verified and "@" in mail else ""


def _text(claims: Mapping[str, Any], name: str, max_length: int) -> str:
    value = claims.get(name)
    return value.replace("\0", "").strip()[:max_length] if isinstance(value, str) else ""


def verified_claims(token: str, jwks: Mapping[str, Any], *, issuer: str, client_id: str, nonce: str) -> dict[str, Any]:
    """Return the claims of an ID token (OpenID Connect Core 1.0, section 3.1.3.7).

    Raises UntrustedAnswerError for an invalid signature, issuer, client or nonce, and for an expired token.
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
    given, subject, audience = claims.get("nonce"), claims["sub"], claims["aud"]
    is_same = isinstance(given, str) and bool(nonce) and hmac.compare_digest(given.encode(), nonce.encode())
    is_shared = isinstance(audience, list) and len(audience) > 1
    is_for_us = claims.get("azp", "" if is_shared else client_id) == client_id
    is_name = isinstance(subject, str) and 0 < len(subject) <= _MAX_SUBJECT_LENGTH and "\0" not in subject
    if not (is_same and is_for_us and is_name):
        raise UntrustedAnswerError
    return claims


def _key_for(header: Mapping[str, Any], jwks: Mapping[str, Any]) -> jwt.PyJWK:
    """Return the only matching published key; raise UntrustedAnswerError."""
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
