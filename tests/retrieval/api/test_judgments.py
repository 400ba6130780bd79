import pytest

from corecube.models import ApiKey
from retrieval.models import Chunk, Judgment


def chunk_name(slug):
    return str(Chunk.objects.filter(document__connection__slug=slug).order_by("document_id", "ordinal").first())


@pytest.fixture
def judge(post):
    def send(secret, chunk, grade, query="How to Roll  back"):
        return post("/api/v1/judgments", {"query": query, "chunk_id": chunk, "grade": grade}, secret)

    return send


def test_a_grade_is_kept_and_taken_back(world, judge):
    secret, chunk = world.key("bob"), chunk_name("runbooks")
    answer = judge(secret, chunk, 3)
    assert answer.status_code == 200
    assert answer.json() == {"query": "how to roll back", "chunk_id": chunk, "grade": 3}
    assert (Judgment.objects.get().grade, Judgment.objects.get().by) == (3, world.bob)
    assert judge(secret, chunk, None).json()["grade"] is None
    assert not Judgment.objects.exists()


def test_a_passage_outside_the_scope_does_not_exist(world, judge):
    secret = world.key("bob")
    refused = judge(secret, chunk_name("vault"), 3)
    unknown = judge(secret, "00000000-0000-0000-0000-000000000000:0", 3)
    assert (refused.status_code, refused.json()) == (404, unknown.json())
    assert refused.json()["error"]["code"] == "unknown_passage"
    assert not Judgment.objects.exists()


def test_a_narrowed_key_judges_within_its_narrowing(world, judge):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.add(world.ledger.compartment)
    assert judge(secret, chunk_name("runbooks"), 3).status_code == 404
    assert judge(secret, chunk_name("ledger"), 3).status_code == 200


@pytest.mark.parametrize(
    ("chunk", "grade", "query"), [("x", 1, "q"), (None, 4, "q"), (None, -1, "q"), (None, 1, " "), (None, 1, "")]
)
def test_what_is_no_judgment_is_refused(world, judge, chunk, grade, query):
    assert judge(world.key("bob"), chunk or chunk_name("runbooks"), grade, query).status_code == 422
    assert not Judgment.objects.exists()


@pytest.mark.parametrize("chunk", ["-" * 33 + ":0", "f" * 32 + ":999999999"])
def test_a_chunk_that_cannot_be_is_not_found(world, judge, chunk):
    assert judge(world.key("bob"), chunk, 1).status_code == 404
