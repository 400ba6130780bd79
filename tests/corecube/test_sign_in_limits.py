"""Failed sign-ins: how many are accepted, who waits how long, and who does not."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.backends import ModelBackend
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.test import Client

from corecube.models import AuditEvent, SignInPace
from corecube.people import password_link
from corecube.sign_in_limits import (
    Attempt,
    SignInLimitError,
    count,
    may_note_provider_refusal,
    name_digest,
    network_of,
    reset_limits,
    undo_attempt,
)

PASSWORD = "b"
CONSOLE, ADMIN = "/login/", "/admin/login/"
HOME, AWAY = "192.0.2.1", "198.51.100.7"


def sign_in(name, password, *, client=None, at=CONSOLE, address=HOME, **headers):
    client = client or Client()
    return client.post(at, {"username": name, "password": password}, REMOTE_ADDR=address, headers=headers)


def fail(times, name="bob", **more):
    return [sign_in(name, "wrong", **more).status_code for _ in range(times)]


def an_hour_later():
    SignInPace.objects.update(paced_until=F("paced_until") - timedelta(hours=1))


def taken(attempt):
    try:
        count(attempt)
    except SignInLimitError as error:
        return error
    return None


@pytest.fixture
def ample(settings):
    """Leave only the limit of a name at an address."""
    settings.CORECUBE_SIGN_IN_FAILURES_PER_NAME = settings.CORECUBE_SIGN_IN_FAILURES_PER_ADDRESS = 1000


@pytest.mark.parametrize("at", [CONSOLE, ADMIN])
@pytest.mark.parametrize("name", ["alice", "bob", "nobody"])
def test_after_five_failures_a_name_waits_at_both_forms_whether_it_exists_or_not(people, ample, at, name):
    assert fail(7, name, at=at) == [200] * 5 + [429] * 2
    other = ADMIN if at == CONSOLE else CONSOLE
    response = sign_in(name, name[0], at=other)
    assert response.status_code == 429
    assert response.headers["Retry-After"] == "180"
    assert "Too many failed sign-ins. Try again in 3 minutes." in response.content.decode()
    assert "_auth_user_id" not in Client().session


def test_the_right_password_opens_nothing_while_the_name_waits_and_opens_again_after_it(people, ample):
    fail(5)
    client = Client()
    assert sign_in("bob", PASSWORD, client=client).status_code == 429
    assert "_auth_user_id" not in client.session
    an_hour_later()
    assert sign_in("bob", PASSWORD, client=client).status_code == 302


def test_waiting_ends_by_itself_one_attempt_at_a_time(people, ample):
    fail(9)
    SignInPace.objects.update(paced_until=F("paced_until") - timedelta(minutes=3, seconds=1))
    assert fail(2) == [200, 429]


def test_refused_attempts_do_not_make_the_wait_longer(people, ample):
    fail(5)
    before = dict(SignInPace.objects.values_list("pk", "paced_until"))
    assert fail(5) == [429] * 5
    assert dict(SignInPace.objects.values_list("pk", "paced_until")) == before


@pytest.mark.parametrize("spelling", ["BOB", " bob ", "\uff22ob", "bob\t"])
def test_spellings_of_a_name_share_its_limit(people, ample, spelling):
    fail(5)
    assert sign_in(spelling, "wrong").status_code == 429


def test_one_address_waits_whichever_names_it_tries(people, settings):
    settings.CORECUBE_SIGN_IN_FAILURES_PER_ADDRESS = 10
    statuses = [sign_in(f"person{number}", "wrong").status_code for number in range(12)]
    assert statuses == [200] * 10 + [429] * 2
    assert sign_in("person0", "wrong", address=AWAY).status_code == 200


def test_one_name_waits_whichever_addresses_try_it(people, settings):
    settings.CORECUBE_SIGN_IN_FAILURES_PER_NAME = 8
    statuses = [sign_in("bob", "wrong", address=f"198.51.100.{number}").status_code for number in range(10)]
    assert statuses == [200] * 8 + [429] * 2
    assert sign_in("alice", "wrong", address="198.51.100.1").status_code == 200


def test_a_browser_in_which_the_user_has_signed_in_gets_in_during_an_attack(people, settings):
    settings.CORECUBE_SIGN_IN_FAILURES_PER_NAME = 8
    browser = Client()
    sign_in("bob", PASSWORD, client=browser)
    browser.post("/logout/")
    assert fail(9)[-1] == 429
    assert [sign_in("bob", "wrong", address=f"198.51.100.{number}").status_code for number in range(9)][-1] == 429
    assert sign_in("bob", PASSWORD, address="203.0.113.9").status_code == 429
    assert sign_in("bob", PASSWORD, client=browser).status_code == 302


def test_a_known_browser_has_the_same_limit_and_knows_one_name_only(people, ample):
    browser = Client()
    sign_in("bob", PASSWORD, client=browser)
    browser.post("/logout/")
    fail(5)
    assert fail(6, client=browser) == [200] * 5 + [429]
    fail(5, "alice")
    assert sign_in("alice", "a", client=browser).status_code == 429


@pytest.mark.parametrize("cookie", ["", "x", "a:b:c", '"\\000"', "é", "W10:1uVabc:sig"])
def test_a_forged_mark_makes_no_browser_known(people, ample, cookie):
    fail(5)
    client = Client()
    client.cookies["known_browser"] = cookie
    assert sign_in("bob", PASSWORD, client=client).status_code == 429


def test_a_right_password_counts_against_no_limit(people, settings):
    settings.CORECUBE_SIGN_IN_FAILURES_PER_NAME = settings.CORECUBE_SIGN_IN_FAILURES_PER_ADDRESS = 5
    assert [sign_in("bob", PASSWORD).status_code for _ in range(12)] == [302] * 12


def test_a_right_password_forgives_what_failed_before_it_but_not_what_failed_elsewhere(people, settings):
    settings.CORECUBE_SIGN_IN_FAILURES_PER_NAME = 8
    fail(4)
    sign_in("bob", PASSWORD)
    assert fail(4) == [200] * 4
    assert sign_in("bob", "wrong", address=AWAY).status_code == 429


def test_attempts_at_the_same_time_cannot_pass_the_limit_together(transactional_db, people, ample, monkeypatch):
    checked, lock = [], threading.Lock()
    check = ModelBackend.authenticate

    def counting(self, *args, **kwargs):
        with lock:
            checked.append(kwargs)
        return check(self, *args, **kwargs)

    monkeypatch.setattr(ModelBackend, "authenticate", counting)
    together = threading.Barrier(25)

    def attempt(number):
        try:
            together.wait(timeout=30)
            return sign_in("bob", f"guess {number}").status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(25) as pool:
        statuses = list(pool.map(attempt, range(50)))
    assert len(checked) == 5
    assert sorted(statuses) == [200] * 5 + [429] * 45


def test_an_ipv6_network_counts_as_one_address(people, settings):
    settings.CORECUBE_SIGN_IN_FAILURES_PER_ADDRESS = 5
    for number in range(5):
        sign_in(f"person{number}", "wrong", address=f"2001:db8:0:1::{number}")
    assert sign_in("person9", "wrong", address="2001:db8:0:1:ffff::1").status_code == 429
    assert sign_in("person9", "wrong", address="2001:db8:0:2::1").status_code == 200


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", "unknown"),
        ("x" * 100, "x" * 64),
    ],
)
def test_addresses_are_written_in_one_way(address, network):
    assert network_of(address) == network


def test_a_header_changes_no_address_unless_a_proxy_is_trusted(people, ample):
    fail(5)
    assert sign_in("bob", "wrong", x_forwarded_for=AWAY).status_code == 429


def test_a_refusal_names_its_limit_once_in_the_audit_log(people, ample):
    fail(12)
    events = AuditEvent.objects.order_by("pk")
    assert list(events.values_list("action", flat=True)) == ["session.refused"] * 5 + ["session.limited"]
    limited = events.last()
    assert (limited.actor, limited.subject) == (None, "bob")
    assert limited.details == {"address": HOME, "limit": "name and address", "known_user": True}


def test_a_name_that_nobody_has_is_not_kept_anywhere(people, ample):
    fail(7, "my secret password")
    assert "secret" not in str([*AuditEvent.objects.values(), *SignInPace.objects.values()])


def test_an_admins_password_alone_opens_the_administration_and_others_are_in_the_audit_log(people, ample):
    assert [sign_in("bob", PASSWORD, at=ADMIN).status_code for _ in range(6)] == [200] * 5 + [429]
    refusals = AuditEvent.objects.filter(action="session.refused", subject="bob", details__reason="not_admin")
    assert refusals.count() == 5


def test_refusals_by_the_sign_in_provider_have_their_own_bounded_room_in_the_log(db):
    assert [may_note_provider_refusal(HOME) for _ in range(40)].count(True) == 30
    assert taken(Attempt.of("bob", HOME)) is None


def test_an_admin_lifts_the_limits_of_a_name_or_an_address(people, ample, capsys):
    fail(5)
    fail(5, "alice", address=AWAY)
    call_command("sign_ins", "lift", name="Bob")
    assert fail(1) == [200]
    assert fail(1, "alice", address=AWAY) == [429]
    call_command("sign_ins", "lift", address=AWAY)
    assert fail(1, "alice", address=AWAY) == [200]
    assert AuditEvent.objects.filter(action="session.limits_lifted").count() == 2
    assert "Limits reset:" in capsys.readouterr().out


def test_a_new_password_by_link_lifts_the_names_limits(people, ample):
    fail(5)
    client = Client()
    page = client.get(password_link(people["bob"], actor=people["alice"]), follow=True)
    new = {"new_password1": "correct horse 9", "new_password2": "correct horse 9"}
    client.post(page.redirect_chain[-1][0], new)
    assert sign_in("bob", "correct horse 9").status_code == 302


def test_the_old_password_cannot_be_guessed_without_limit_either(people, client):
    client.force_login(people["bob"])
    new = {"new_password1": "correct horse 9", "new_password2": "correct horse 9"}
    pages = [client.post("/password/", {"old_password": "wrong", **new}).content.decode() for _ in range(6)]
    assert ["Too many failed sign-ins" in page for page in pages] == [False] * 5 + [True]
    assert "Too many" in client.post("/password/", {"old_password": PASSWORD, **new}).content.decode()
    an_hour_later()
    assert client.post("/password/", {"old_password": PASSWORD, **new}).status_code == 302


def test_the_administration_changes_passwords_at_the_console(people, client):
    client.force_login(people["alice"])
    assert client.get("/admin/password_change/").headers["Location"] == "/password/"


def test_rows_that_limit_nothing_go_with_the_next_attempt(people, ample):
    fail(3, "somebody")
    an_hour_later()
    fail(1)
    assert set(SignInPace.objects.values_list("name", flat=True)) == {name_digest("bob"), ""}
    assert SignInPace.objects.count() == 3


def test_lifting_leaves_the_room_of_the_provider(db):
    may_note_provider_refusal(HOME)
    reset_limits()
    assert SignInPace.objects.count() == 1


def test_the_wait_is_that_of_the_slowest_limit(db, settings):
    settings.CORECUBE_SIGN_IN_FAILURES = 1
    attempt = Attempt.of("bob", HOME)
    assert taken(attempt) is None
    assert taken(attempt).retry_after_seconds == 900
    undo_attempt(attempt)
    assert taken(attempt) is None
