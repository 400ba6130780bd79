"""Which tokens name a user for a key."""

import base64
import hmac
import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from corecube.errors import NotPermittedError
from corecube.keys import ForwardingNotAllowedError, UserTokenError, allow_forwarding, forwarded_user, stop_forwarding
from corecube.models import ApiKey, AuditEvent, ForwardedToken


@pytest.fixture
def key(people):
    return ApiKey.issue(user=people["alice"], name="front end")[0]


@pytest.fixture
def secret(key, people):
    return allow_forwarding(key, actor=people["alice"])


def claims(**changes):
    now = int(time.time())
    told = {"sub": "bob", "aud": "corecube", "iat": now, "exp": now + 120, **changes}
    return {name: value for name, value in told.items() if value is not None}


def token(secret, **changes):
    return jwt.encode(claims(**changes), secret, algorithm="HS256")


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def by_hand(secret, header, **changes):
    """Return a token with any header at all, signed with HMAC-SHA256 all the same."""
    signed = f"{part(header)}.{part(claims(**changes))}"
    mac = base64.urlsafe_b64encode(hmac.digest(secret.encode(), signed.encode(), "sha256")).decode().rstrip("=")
    return f"{signed}.{mac}"


def test_a_good_token_names_an_active_user(key, secret, people):
    assert forwarded_user(key, token(secret)) == people["bob"]


def test_a_token_made_without_any_library_is_as_good(key, secret, people):
    assert forwarded_user(key, by_hand(secret, {"alg": "HS256", "typ": "JWT"})) == people["bob"]


@pytest.mark.parametrize(
    "changes",
    [
        {"sub": "nobody"},
        {"sub": "Bob"},
        {"sub": ""},
        {"sub": None},
        {"sub": 7},
        {"sub": ["bob"]},
        {"sub": "bob\0"},
        {"sub": "b" * 151},
        {"aud": "elsewhere"},
        {"aud": ["corecube", "elsewhere"]},
        {"aud": None},
        {"exp": int(time.time()) - 60},
        {"exp": None},
        {"exp": "soon"},
        {"exp": 1e400},
        {"exp": 1e18},
        {"iat": None},
        {"iat": int(time.time()) + 3600, "exp": int(time.time()) + 3660},
        {"iat": int(time.time()) - 600},
        {"iat": int(time.time()), "exp": int(time.time()) + 301},
        {"nbf": int(time.time()) + 3600},
        {"jti": 7},
    ],
    ids=" ".join,
)
def test_everything_else_is_refused_in_the_same_words(key, secret, changes):
    with pytest.raises(UserTokenError) as caught:
        forwarded_user(
            key, token(secret, **changes) if changes.get("sub") != 7 else by_hand(secret, {"alg": "HS256"}, **changes)
        )
    assert str(caught.value) == str(UserTokenError())


def test_other_signatures_are_refused(key, secret, people):
    other = allow_forwarding(ApiKey.issue(user=people["alice"], name="other")[0], actor=people["alice"])
    private = rsa.generate_private_key(65537, 2048)
    forged = [
        token(other),
        jwt.encode(claims(), "", algorithm="none"),
        jwt.encode(claims(), secret * 2, algorithm="HS512"),
        jwt.encode(claims(), private, algorithm="RS256"),
        by_hand(secret, {"alg": "none"}),
        by_hand(secret, {"alg": "HS256", "crit": ["x"], "x": 1}),
        token(secret)[:-2],
        token(secret).rpartition(".")[0] + ".",
        "",
        "bob",
        "é",
        "." * 5000,
        base64.urlsafe_b64encode(b"[" * 3000).decode() + ".e30.x",
    ]
    for it in forged:
        with pytest.raises(UserTokenError):
            forwarded_user(key, it)


def test_who_is_not_active_is_not_named(key, secret, people):
    people["bob"].is_active = False
    people["bob"].save()
    with pytest.raises(UserTokenError):
        forwarded_user(key, token(secret))


def test_a_token_with_an_id_works_once_for_its_key(key, secret, people):
    forwarded_user(key, token(secret, jti="one"))
    for _ in range(2):
        with pytest.raises(UserTokenError):
            forwarded_user(key, token(secret, jti="one"))
    other = ApiKey.issue(user=people["alice"], name="other")[0]
    its_secret = allow_forwarding(other, actor=people["alice"])
    assert forwarded_user(other, token(its_secret, jti="one")) == people["bob"]
    assert forwarded_user(key, token(secret, jti="two")) == people["bob"]


def test_what_is_over_is_not_kept(key, secret):
    forwarded_user(key, token(secret, jti="one"))
    ForwardedToken.objects.update(expires_at="2020-01-01T00:00:00Z")
    forwarded_user(key, token(secret, jti="two"))
    assert ForwardedToken.objects.count() == 1


def test_a_key_that_may_not_is_refused_whatever_it_sends(key, people):
    with pytest.raises(ForwardingNotAllowedError):
        forwarded_user(key, token("x" * 43))


def test_a_new_secret_ends_the_old_one_and_stopping_ends_both(key, secret, people):
    newer = allow_forwarding(key, actor=people["alice"])
    with pytest.raises(UserTokenError):
        forwarded_user(key, token(secret))
    assert forwarded_user(key, token(newer)) == people["bob"]
    stop_forwarding(key, actor=people["alice"])
    with pytest.raises(ForwardingNotAllowedError):
        forwarded_user(key, token(newer))
    assert ApiKey.objects.get(pk=key.pk).sealed_forwarding_secret == ""


def test_only_an_admin_changes_it(key, people):
    for change in (allow_forwarding, stop_forwarding):
        with pytest.raises(NotPermittedError):
            change(key, actor=people["bob"])


def test_the_secret_is_sealed_and_not_in_the_audit_log(key, secret, people):
    stop_forwarding(key, actor=people["alice"])
    allow_forwarding(key, actor=people["alice"])
    assert secret not in str(ApiKey.objects.values().get())
    assert secret not in str(AuditEvent.objects.values())
    assert [it.action for it in AuditEvent.objects.order_by("pk")] == [
        "key.forwarding_allowed",
        "key.forwarding_stopped",
        "key.forwarding_allowed",
    ]


def test_after_secret_key_has_changed_no_token_is_taken(key, secret, settings, caplog):
    settings.SECRET_KEY = "another one"
    with pytest.raises(UserTokenError):
        forwarded_user(key, token(secret))
    assert "forwarding.secret_lost" in caplog.text


@pytest.mark.parametrize("name", ["\ud800", "bob\udfff", "bob\0"])
def test_a_name_that_no_store_can_hold_names_nobody(key, secret, name):
    with pytest.raises(UserTokenError):
        forwarded_user(key, by_hand(secret, {"alg": "HS256"}, sub=name))


def test_an_id_of_any_text_works_once(key, secret, people):
    assert forwarded_user(key, by_hand(secret, {"alg": "HS256"}, jti="\ud800")) == people["bob"]
    with pytest.raises(UserTokenError):
        forwarded_user(key, by_hand(secret, {"alg": "HS256"}, jti="\ud800"))
