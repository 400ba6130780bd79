"""A front end's key that acts for its users: it opens what both see, and nothing else does."""

import time

import jwt
import pytest

from corecube.access import Principal, scope_for
from corecube.keys import USER_HEADER, allow_forwarding
from corecube.models import ApiKey, Compartment, Connection, Grant
from corecube.scope import Sensitivity
from retrieval.models import SearchRecord

SEARCH = "/api/v1/search"
BODY = {"query": "rollback", "top_k": 100, "explain": True}


@pytest.fixture
def front(world):
    """The key of a front end, which acts for Alice, who sees all there is."""
    return Front(world.alice)


class Front:
    def __init__(self, owner):
        self.key, self.bearer = ApiKey.issue(user=owner, name="front end")
        owner.is_staff, was = True, owner.is_staff
        self.secret = allow_forwarding(self.key, actor=owner)
        owner.is_staff = was

    def sign(self, name, **changes):
        now = int(time.time())
        claims = {"sub": name, "aud": "corecube", "iat": now, "exp": now + 60, **changes}
        return jwt.encode(claims, self.secret, algorithm="HS256")

    def scope(self, user):
        key = ApiKey.objects.for_secret(self.bearer)
        return sorted(it.connection.slug for it in scope_for(Principal(user, key)).included)


@pytest.fixture
def send(post, front):
    """Return a function that searches for a user, with the front end's key unless another is given."""

    def send_one(name, *, by=front, body=BODY, path=SEARCH, **headers):
        return post(path, body, by.bearer, **{USER_HEADER: by.sign(name), **headers})

    return send_one


def sources(response):
    return {hit["source"]["connection"] for hit in response.json()["hits"]}


class TestTheScope:
    def test_it_is_the_users_where_the_key_sees_more(self, world, front, send):
        assert sources(send("bob")) == {"runbooks"}
        assert front.scope(world.bob) == ["runbooks"]
        assert sources(send("charlie")) == set()

    def test_it_is_the_keys_where_the_user_sees_more(self, world, send):
        response = send("alice", by=Front(world.bob))
        assert sources(response) == {"runbooks"}
        assert "zanzibar" not in response.content.decode()
        assert "excluded" not in response.json()["explain"]

    def test_the_lower_clearance_counts_in_each_compartment(self, world):
        """Bob has the ledger up to internal, and the key's own user nothing of it."""
        owner = Front(world.charlie)
        engineering = Compartment.objects.get(slug="engineering")
        Grant.objects.create(user=world.charlie, compartment=engineering, clearance=Sensitivity.RESTRICTED)
        Grant.objects.create(
            user=world.bob, compartment=Compartment.objects.get(slug="finance"), clearance=Sensitivity.RESTRICTED
        )
        assert owner.scope(world.bob) == ["runbooks"]
        inclusion = scope_for(Principal(world.bob, ApiKey.objects.for_secret(owner.bearer))).included[0]
        assert inclusion.clearance is Sensitivity.INTERNAL

    @pytest.mark.usefixtures("world")
    def test_the_keys_narrowing_holds(self, front, send):
        front.key.compartments.add(Compartment.objects.get(slug="finance"))
        assert sources(send("bob")) == set()
        assert sources(send("alice")) == {"ledger"}
        front.key.max_sensitivity = Sensitivity.PUBLIC
        front.key.save()
        assert sources(send("alice")) == set()

    def test_its_presets_hold(self, front, send):
        front.key.presets = ["helix"]
        front.key.save()
        assert send("bob").status_code == 403

    @pytest.mark.parametrize("change", ["disabled", "revoked grant", "owner's grant"])
    @pytest.mark.usefixtures("front")
    def test_what_is_closed_is_closed_at_once(self, world, send, change):
        if change == "disabled":
            Connection.objects.filter(slug="runbooks").update(enabled=False)
        elif change == "revoked grant":
            Grant.objects.filter(group__user=world.bob).delete()
        else:
            Grant.objects.filter(user=world.alice).delete()
        assert sources(send("bob")) == set()

    def test_no_include_reaches_past_either(self, send):
        for slug in ("vault", "ledger", "nowhere"):
            response = send("bob", body={**BODY, "scope": {"include": [slug]}})
            assert response.status_code == 404
            assert slug not in response.content.decode()


class TestWhoItIs:
    def test_the_search_belongs_to_the_user_and_names_the_key(self, world, front, send):
        record = SearchRecord.objects.get(pk=send("bob").json()["trace_id"])
        assert (record.user, record.key, record.for_another) == (world.bob, front.key, False)

    def test_feedback_is_the_users_own(self, send):
        trace = send("bob").json()["trace_id"]
        thumb = {"trace_id": trace, "rating": 1}
        assert send("charlie", path="/api/v1/feedback", body=thumb).status_code == 404
        assert send("alice", path="/api/v1/feedback", body=thumb).status_code == 404
        assert send("bob", path="/api/v1/feedback", body=thumb).status_code == 204
        assert SearchRecord.objects.get(pk=trace).feedback == 1

    def test_the_rate_is_the_keys(self, front, send):
        front.key.requests_per_minute = 2
        front.key.save()
        assert [send(name).status_code for name in ("bob", "charlie", "bob")] == [200, 200, 429]

    def test_a_wrong_token_counts_too(self, front, send):
        front.key.requests_per_minute = 2
        front.key.save()
        assert [send("nobody").status_code for _ in range(3)] == [401, 401, 429]

    def test_chat_answers_for_the_user(self, send):
        body = {"model": "corecube", "messages": [{"role": "user", "content": "zanzibar tangerine"}]}
        answer = send("bob", path="/v1/chat/completions", body=body)
        assert answer.status_code == 200
        assert "zanzibar" not in str(answer.json()["search_results"])
        assert SearchRecord.objects.get().user.username == "bob"


class TestWhatIsRefused:
    def test_unknown_and_forged_are_told_the_same(self, front, post, world):
        world.charlie.is_active = False
        world.charlie.save()
        forged = jwt.encode({"sub": "bob"}, "x" * 43, algorithm="HS256")
        tokens = [front.sign("nobody"), front.sign("charlie"), forged, front.sign("bob", aud="x"), "", "bob"]
        answers = [post(SEARCH, BODY, front.bearer, **{USER_HEADER: token}) for token in tokens]
        assert {(it.status_code, it.content) for it in answers} == {(401, answers[0].content)}
        assert answers[0].json()["error"]["code"] == "invalid_user_token"
        assert answers[0].json()["error"]["param"] == USER_HEADER

    def test_a_key_that_may_not_is_refused_and_not_answered_as_its_own_user(self, world, front, post):
        response = post(SEARCH, BODY, world.key("alice"), **{USER_HEADER: front.sign("bob")})
        assert (response.status_code, response.json()["error"]["code"]) == (403, "not_permitted")

    def test_without_a_key_it_is_nothing(self, front, post, client, world):
        assert post(SEARCH, BODY, **{USER_HEADER: front.sign("alice")}).status_code == 401
        client.force_login(world.bob)
        answer = post(SEARCH, BODY, **{USER_HEADER: front.sign("alice")})
        assert sources(answer) == {"runbooks"}

    @pytest.mark.parametrize(
        "header",
        [
            "X-OpenWebUI-User-Id",
            "X-OpenWebUI-User-Name",
            "X-OpenWebUI-User-Email",
            "X-OpenWebUI-User-Role",
            "X-Forwarded-User",
            "X-Remote-User",
            "Remote-User",
            "X-User",
            "X-CoreCube-Username",
        ],
    )
    def test_unsigned_headers_change_nothing(self, world, front, post, header):
        assert sources(post(SEARCH, BODY, world.key("bob"), **{header: "alice"})) == {"runbooks"}
        assert sources(post(SEARCH, BODY, front.bearer, **{header: "charlie"})) == {"runbooks", "vault", "ledger"}


class TestWhatItMayNotDo:
    @pytest.mark.usefixtures("get")
    def test_an_admin_is_none_through_the_key_of_somebody_who_is_not(self, world, client):
        front = Front(world.bob)
        headers = {"Authorization": f"Bearer {front.bearer}", USER_HEADER: front.sign("alice")}
        listed = client.get("/api/v1/connections", headers=headers).json()["connections"]
        assert [it["connection"] for it in listed] == ["runbooks"]
        assert client.post("/api/v1/connections/vault/sync", {}, headers=headers).status_code == 403
        assert client.get("/api/v1/access/check?connection=vault&user=bob", headers=headers).status_code == 403

    @pytest.mark.usefixtures("world")
    def test_nobody_gets_the_key_owners_admin_right(self, front, client):
        headers = {"Authorization": f"Bearer {front.bearer}", USER_HEADER: front.sign("bob")}
        assert client.post("/api/v1/connections/vault/sync", {}, headers=headers).status_code == 403

    @pytest.mark.parametrize("owner", ["alice", "bob"])
    def test_nobody_learns_of_a_key_or_ends_one(self, world, client, owner):
        front = Front(getattr(world, owner))
        other = {"alice": "bob", "bob": "alice"}[owner]
        headers = {"Authorization": f"Bearer {front.bearer}", USER_HEADER: front.sign(other)}
        for answer in (
            client.get("/api/v1/keys", headers=headers),
            client.delete(f"/api/v1/keys/{front.key.pk}", headers=headers),
        ):
            assert (answer.status_code, front.key.prefix in answer.content.decode()) == (403, False)
        assert ApiKey.objects.get(pk=front.key.pk).revoked_at is None

    def test_the_keys_right_to_push_is_not_the_users(self, world, client):
        front = Front(world.bob)
        inbox = Connection.objects.create(slug="inbox", name="In", kind="push", compartment=world.runbooks.compartment)
        front.key.push_connections.add(inbox)
        body = {"connection": "inbox", "external_id": "1", "text": "hello", "media_type": "text/plain"}
        for name, status in (("charlie", 403), ("bob", 200)):
            headers = {"Authorization": f"Bearer {front.bearer}", USER_HEADER: front.sign(name)}
            response = client.put("/api/v1/documents", {**body, "wait": True}, "application/json", headers=headers)
            assert response.status_code == status, response.content
