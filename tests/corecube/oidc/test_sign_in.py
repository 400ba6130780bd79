"""Signing in through a real provider: who comes in, as whom, into which groups."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.models import AuditEvent, Compartment, Connection, Grant, OidcGroup, OidcIdentity, OidcMembership, User
from corecube.oidc.accounts import map_value, unmap_value
from corecube.scope import Sensitivity
from tests.corecube.oidc.conftest import CALLBACK, CLIENT, SECRET, START, Browser, challenge_of, query_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def ada(provider):
    provider.knows("sub-ada", preferred_username="ada", given_name="Ada", family_name="Lovelace")
    return "sub-ada"


@pytest.fixture
def finance(db):
    """A group that opens a connection."""
    compartment = Compartment.objects.create(slug="finance", name="Finance")
    Connection.objects.create(slug="ledger", name="Ledger", kind="upload", compartment=compartment)
    group = Group.objects.create(name="finance")
    Grant.objects.create(group=group, compartment=compartment, clearance=Sensitivity.RESTRICTED)
    return group


def seen_by(username):
    return [it.connection.slug for it in scope_for(Principal(User.objects.get(username=username))).included]


def actions():
    return list(AuditEvent.objects.order_by("pk").values_list("action", "subject"))


class TestFirstSignIn:
    def test_somebody_new_gets_a_user_who_sees_nothing(self, browser, ada):
        response = browser.sign_in(ada)
        user = User.objects.get()
        assert (response.status_code, response.headers["Location"]) == (302, "/")
        assert (user.username, user.get_full_name(), user.is_staff) == ("ada", "Ada Lovelace", False)
        assert not user.has_usable_password()
        assert browser.user_id == str(user.pk)
        assert scope_for(Principal(user)).included == ()
        assert browser.client.get("/explorer/").status_code == 200

    def test_it_is_in_the_audit_log(self, browser, ada):
        browser.sign_in(ada)
        assert actions() == [("user.created", "ada"), ("session.signed_in", "ada")]
        assert AuditEvent.objects.get(action="session.signed_in").details == {"address": "127.0.0.1", "via": "provider"}
        assert SECRET not in str(list(AuditEvent.objects.values()))

    @pytest.mark.usefixtures("ada")
    def test_the_provider_was_asked_with_state_nonce_and_pkce(self, browser):
        asked = query_of(browser.leave())
        assert asked["response_type"] == "code"
        assert asked["scope"] == "openid profile email"
        assert asked["redirect_uri"] == f"http://testserver{CALLBACK}"
        assert len(asked["state"]) >= 32
        assert len(asked["nonce"]) >= 32
        assert asked["code_challenge_method"] == "S256"

    def test_the_code_is_exchanged_with_the_verifier_and_the_secret_in_a_header(self, browser, provider, ada):
        address = browser.leave()
        browser.client.get(browser.come_back(address, ada))
        (_, _, form, headers) = next(it for it in provider.seen if it[0] == "/oauth2/token")
        assert challenge_of(form["code_verifier"]) == query_of(address)["code_challenge"]
        assert "client_secret" not in form
        assert headers["Authorization"].startswith("Basic ")

    def test_nobody_is_made_where_that_is_off(self, browser, ada, settings):
        settings.CORECUBE_OIDC_CREATE_USERS = False
        response = browser.sign_in(ada)
        assert response.status_code == 403
        assert "You have no account yet." in response.content.decode()
        assert not User.objects.exists()
        assert browser.user_id is None

    def test_a_username_that_somebody_has_is_not_taken_over(self, browser, provider, people):
        provider.knows("sub-bob", preferred_username="BOB")
        browser.sign_in("sub-bob")
        assert browser.user_id != str(people["bob"].pk)
        assert User.objects.get(pk=browser.user_id).username == "BOB-2"

    def test_a_name_that_no_username_can_be_is_made_one(self, browser, provider):
        provider.knows("sub-x", preferred_username="eve adams\u0000 <b>")
        browser.sign_in("sub-x")
        assert User.objects.get().username == "eve-adams-b"

    def test_without_any_name_one_is_made(self, browser, provider):
        provider.knows("sub-y", family_name=["no", "text"])
        browser.sign_in("sub-y")
        assert User.objects.get().username.startswith("user-")


class TestTheSamePerson:
    def test_is_known_by_the_subject_whatever_else_changes(self, browser, provider, ada):
        browser.sign_in(ada)
        first = browser.user_id
        browser.client.post("/logout/")
        provider.knows(ada, preferred_username="countess", family_name="King")
        browser.sign_in(ada)
        assert browser.user_id == first
        assert (User.objects.get().username, User.objects.get().get_full_name()) == ("ada", "Ada King")

    def test_another_subject_with_the_same_names_is_somebody_else(self, browser, provider, ada):
        browser.sign_in(ada)
        first = browser.user_id
        provider.knows("sub-other", preferred_username="ada", email="ada@example.org", email_verified=True)
        browser.sign_in("sub-other")
        assert browser.user_id != first

    def test_the_same_subject_of_another_provider_is_somebody_else(self, browser, ada, people):
        OidcIdentity.objects.create(user=people["alice"], issuer="https://elsewhere.example", subject=ada)
        browser.sign_in(ada)
        assert browser.user_id != str(people["alice"].pk)

    def test_who_is_not_active_stays_out_and_nothing_of_them_changes(self, browser, provider, ada, finance, people):
        browser.sign_in(ada)
        User.objects.filter(username="ada").update(is_active=False)
        map_value(finance, "fin", actor=people["alice"])
        provider.knows(ada, groups=["fin"])
        stranger = Browser(Client(), provider)
        response = stranger.sign_in(ada)
        assert response.status_code == 403
        assert "Your account is inactive." in response.content.decode()
        assert stranger.user_id is None
        assert not User.objects.get(username="ada").groups.exists()
        assert browser.client.get("/explorer/").status_code == 302
        refusal = AuditEvent.objects.get(action="session.refused")
        assert refusal.details == {"address": "127.0.0.1", "via": "provider", "reason": "sign_in_inactive"}


class TestMail:
    @pytest.fixture
    def bob(self, people):
        people["bob"].email = "Bob@example.org"
        people["bob"].save()
        return people["bob"]

    @pytest.mark.parametrize("verified", [False, None, "no", 1, "True"])
    def test_an_unverified_address_opens_nothing_and_is_not_kept(self, browser, provider, bob, settings, verified):
        settings.CORECUBE_OIDC_LINK_BY_MAIL = True
        said = {} if verified is None else {"email_verified": verified}
        provider.knows("sub-eve", email="bob@example.org", **said)
        browser.sign_in("sub-eve")
        assert browser.user_id != str(bob.pk)
        assert User.objects.get(pk=browser.user_id).email == ""

    def test_a_verified_one_opens_nothing_unless_that_is_on(self, browser, provider, bob):
        provider.knows("sub-bob", email="bob@example.org", email_verified=True)
        browser.sign_in("sub-bob")
        assert browser.user_id != str(bob.pk)

    def test_a_verified_one_finds_its_user_once(self, browser, provider, bob, settings):
        settings.CORECUBE_OIDC_LINK_BY_MAIL = True
        for subject in ("sub-bob", "sub-second"):
            provider.knows(subject, email="bob@example.org", email_verified=True)
        browser.sign_in("sub-bob")
        assert browser.user_id == str(bob.pk)
        assert ("user.linked", "bob") in actions()
        browser.client.post("/logout/")
        browser.sign_in("sub-second")
        assert browser.user_id != str(bob.pk)

    def test_an_address_that_two_have_finds_neither(self, browser, provider, bob, people, settings):
        settings.CORECUBE_OIDC_LINK_BY_MAIL = True
        User.objects.filter(pk=people["alice"].pk).update(email="bob@EXAMPLE.org")
        provider.knows("sub-bob", email="bob@example.org", email_verified=True)
        browser.sign_in("sub-bob")
        assert browser.user_id not in {str(bob.pk), str(people["alice"].pk)}


class TestGroups:
    @pytest.fixture
    def mapped(self, finance, people):
        map_value(finance, "fin-eu", actor=people["alice"])
        return finance

    @pytest.mark.usefixtures("mapped")
    def test_a_group_is_gained_and_lost_with_the_claim(self, browser, provider, ada):
        provider.knows(ada, preferred_username="ada", groups=["staff", "fin-eu"])
        browser.sign_in(ada)
        assert seen_by("ada") == ["ledger"]
        provider.knows(ada, preferred_username="ada", groups=["staff"])
        browser.sign_in(ada)
        assert seen_by("ada") == []
        changes = AuditEvent.objects.filter(action="user.groups_changed").order_by("pk")
        assert [(it.details["added"], it.details["removed"]) for it in changes] == [
            (["finance"], []),
            ([], ["finance"]),
        ]

    @pytest.mark.usefixtures("mapped")
    def test_a_claim_that_is_missing_closes_what_it_opened(self, browser, provider, ada):
        provider.knows(ada, preferred_username="ada", groups=["fin-eu"])
        browser.sign_in(ada)
        provider.knows(ada, preferred_username="ada")
        browser.sign_in(ada)
        assert seen_by("ada") == []

    def test_a_membership_made_by_hand_stays(self, browser, provider, ada, mapped):
        browser.sign_in(ada)
        User.objects.get(username="ada").groups.add(mapped)
        provider.knows(ada, preferred_username="ada", groups=["fin-eu"])
        browser.sign_in(ada)
        provider.knows(ada, preferred_username="ada", groups=[])
        browser.sign_in(ada)
        assert seen_by("ada") == ["ledger"]

    def test_one_made_by_hand_after_one_by_sign_in_stays(self, browser, provider, ada, mapped):
        provider.knows(ada, preferred_username="ada", groups=["fin-eu"])
        browser.sign_in(ada)
        mapped.user_set.clear()
        mapped.user_set.add(User.objects.get(username="ada"))
        provider.knows(ada, preferred_username="ada", groups=[])
        browser.sign_in(ada)
        assert seen_by("ada") == ["ledger"]

    @pytest.mark.usefixtures("finance")
    def test_a_group_that_no_value_is_mapped_to_is_not_opened_by_its_name(self, browser, provider, ada):
        provider.knows(ada, preferred_username="ada", groups=["finance"])
        browser.sign_in(ada)
        assert seen_by("ada") == []

    @pytest.mark.parametrize(
        ("claim", "told"),
        [
            ("roles", {"roles": "fin-eu"}),
            ("realm_access.roles", {"realm_access": {"roles": ["fin-eu", 7, None, {"fin-eu": 1}]}}),
            ("https://example.org/groups", {"https://example.org/groups": ["fin-eu"]}),
        ],
    )
    @pytest.mark.usefixtures("mapped")
    def test_the_claim_can_be_another(self, browser, provider, ada, settings, claim, told):
        settings.CORECUBE_OIDC_GROUPS_CLAIM = claim
        provider.knows(ada, preferred_username="ada", **told)
        browser.sign_in(ada)
        assert seen_by("ada") == ["ledger"]

    def test_a_value_that_is_taken_away_takes_its_members_along(self, browser, provider, ada, mapped, people):
        mapped.user_set.add(people["bob"])
        provider.knows(ada, preferred_username="ada", groups=["fin-eu"])
        browser.sign_in(ada)
        change = unmap_value(OidcGroup.objects.get(), actor=people["alice"])
        assert dict(change.lost) == {"ada": 1}
        assert [user.username for user in mapped.user_set.all()] == ["bob"]
        assert not OidcMembership.objects.exists()

    def test_with_another_value_left_they_stay_until_their_next_sign_in(self, browser, provider, ada, mapped, people):
        map_value(mapped, "fin-us", actor=people["alice"])
        provider.knows(ada, preferred_username="ada", groups=["fin-eu"])
        browser.sign_in(ada)
        unmap_value(OidcGroup.objects.get(value="fin-eu"), actor=people["alice"])
        assert seen_by("ada") == ["ledger"]
        browser.sign_in(ada)
        assert seen_by("ada") == []


class TestAdmins:
    @pytest.fixture(autouse=True)
    def chiefs(self, settings):
        settings.CORECUBE_OIDC_ADMIN_GROUP = "chiefs"

    def is_admin(self):
        return User.objects.get(username="ada").is_admin

    def test_the_right_comes_and_goes_with_the_claim(self, browser, provider, ada):
        provider.knows(ada, preferred_username="ada", groups=["chiefs"])
        browser.sign_in(ada)
        assert self.is_admin()
        provider.knows(ada, preferred_username="ada", groups=[])
        browser.sign_in(ada)
        assert not self.is_admin()
        assert [it for it in actions() if "admin" in it[0]] == [
            ("user.admin_given", "ada"),
            ("user.admin_taken", "ada"),
        ]

    @pytest.mark.usefixtures("provider")
    def test_one_given_by_hand_stays(self, browser, ada):
        browser.sign_in(ada)
        User.objects.update(is_staff=True, is_superuser=True)
        browser.sign_in(ada)
        assert self.is_admin()

    def test_no_claim_makes_an_admin_where_no_value_is_set(self, browser, provider, ada, settings):
        settings.CORECUBE_OIDC_ADMIN_GROUP = ""
        provider.knows(ada, preferred_username="ada", groups=["", "chiefs"])
        browser.sign_in(ada)
        assert not self.is_admin()


class TestTheSession:
    def test_it_gets_a_new_key(self, browser, ada):
        address = browser.leave()
        before = browser.client.session.session_key
        browser.client.get(browser.come_back(address, ada))
        assert browser.client.session.session_key != before

    def test_it_ends_in_time(self, browser, ada, settings):
        settings.CORECUBE_OIDC_SESSION_HOURS = 3
        browser.sign_in(ada)
        ends = browser.client.session.get_expiry_date()
        assert timedelta(hours=2, minutes=59) < ends - timezone.now() <= timedelta(hours=3)

    def test_it_holds_no_token(self, browser, ada):
        browser.sign_in(ada)
        assert "eyJ" not in str(dict(browser.client.session.items()))

    @pytest.mark.parametrize("path", ["/documents/", "/?q=a"])
    def test_one_comes_back_to_where_one_was(self, browser, ada, path):
        assert browser.sign_in(ada, path.replace("?", "%3F")).headers["Location"] == path

    @pytest.mark.parametrize("path", ["https://evil.example/", "//evil.example", "javascript:a()", "/\\evil.example"])
    def test_nowhere_else(self, browser, ada, path):
        assert browser.sign_in(ada, path).headers["Location"] == "/"

    def test_the_address_to_come_back_to_can_be_set(self, browser, provider, ada, settings):
        settings.CORECUBE_OIDC_CALLBACK_URL = f"https://cube.example.org{CALLBACK}"
        address = browser.leave()
        assert query_of(address)["redirect_uri"] == settings.CORECUBE_OIDC_CALLBACK_URL
        browser.client.get(browser.come_back(address, ada))
        assert next(it[2] for it in provider.seen if it[0] == "/oauth2/token")["redirect_uri"].startswith("https://")
        assert browser.user_id


class TestTheSignInPage:
    @pytest.mark.usefixtures("provider")
    def test_it_offers_both(self, client):
        page = client.get("/login/?next=/documents/").content.decode()
        assert 'href="/login/provider/?next=%2Fdocuments%2F"' in page
        assert "Sign in with single sign-on" in page
        assert 'name="password"' in page

    @pytest.mark.usefixtures("db")
    def test_it_offers_a_password_alone_without_a_provider(self, client):
        page = client.get("/login/").content.decode()
        assert "provider" not in page
        assert [client.get(path).status_code for path in (START, CALLBACK, "/logout/done/", "/logout/provider/")] == [
            404
        ] * 4

    @pytest.mark.usefixtures("provider", "people")
    def test_it_offers_the_provider_alone(self, client, settings):
        settings.CORECUBE_OIDC_ONLY = True
        settings.AUTHENTICATION_BACKENDS = ["corecube.oidc.backend.ProviderBackend"]
        page = client.get("/login/").content.decode()
        assert 'name="password"' not in page
        for path in ("/login/", "/admin/login/"):
            client.post(path, {"username": "alice", "password": "a"})
            assert "_auth_user_id" not in client.session

    @pytest.mark.usefixtures("provider")
    def test_a_password_still_works_beside_it(self, client, people):
        client.post("/login/", {"username": "bob", "password": "b"})
        assert client.session["_auth_user_id"] == str(people["bob"].pk)


class TestSigningOut:
    def test_it_says_that_the_provider_is_another_matter(self, browser, ada):
        browser.sign_in(ada)
        response = browser.client.post("/logout/")
        assert response.headers["Location"] == "/logout/done/"
        assert browser.user_id is None
        assert 'href="/logout/provider/"' in browser.client.get("/logout/done/").content.decode()

    def test_it_leads_to_the_providers_own_sign_out(self, client, provider):
        address = client.get("/logout/provider/").headers["Location"]
        assert address.startswith(f"{provider.issuer}/oauth2/end_session?")
        assert query_of(address) == {"client_id": CLIENT, "post_logout_redirect_uri": "http://testserver/login/"}

    @pytest.mark.usefixtures("provider", "people")
    def test_who_came_by_password_is_told_nothing_of_it(self, client):
        client.post("/login/", {"username": "bob", "password": "b"})
        assert client.post("/logout/").headers["Location"] == "/login/"
