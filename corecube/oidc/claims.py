"""Reading what the provider says of a person. Free of Django."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_MAX_NAME_LENGTH: Final = 150
_MAX_MAIL_LENGTH: Final = 254
_MAX_GROUP_LENGTH: Final = 500
#: Values of the groups claim that are read.
_MAX_GROUPS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody whom the provider vouches for."""

    issuer: str
    subject: str
    #: What they would like to be called here; empty where the provider does not say.
    username: str
    first_name: str
    last_name: str
    #: Empty unless the provider has verified it.
    mail: str
    groups: frozenset[str]


def person_of(claims: Mapping[str, Any], *, groups_claim: str) -> Person:
    """Return the person whom verified claims describe; what is missing or of the wrong form is left empty."""
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
    """Return the values of the groups claim: a list of texts or one text.

    A name with dots is a claim's own name or, where there is none such, a path: "realm_access.roles".
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
    """Return the e-mail address if the provider says that it has verified it."""
    said = claims.get("email_verified")
    is_verified = said is True or said == "true"
    mail = _text(claims, "email", _MAX_MAIL_LENGTH)
    return mail if is_verified and "@" in mail else ""


def _text(claims: Mapping[str, Any], name: str, max_length: int) -> str:
    value = claims.get(name)
    return value.replace("\0", "").strip()[:max_length] if isinstance(value, str) else ""
