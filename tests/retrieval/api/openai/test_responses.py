"""The Responses API with the stock client: create, stream, continue, read and delete."""

import openai
import pytest

from corecube.models import ApiKey
from retrieval.models import Conversation, LanguageModel, Message
from tests.fake_llm import FakeLLM

QUESTION = {"model": "corecube", "input": "rollback staging database"}
SENTENCE = "Run deployctl rollback before touching the staging database. [1]"


@pytest.fixture
def bob(connect, world):
    return connect(world.key("bob")).responses


def test_it_answers_with_annotations_and_stores_the_conversation(bob, world):
    answer = bob.create(**QUESTION)
    (part,) = answer.output[0].content
    assert SENTENCE in answer.output_text
    assert answer.output_text[part.annotations[0].start_index : part.annotations[0].end_index] == "[1]"
    assert part.annotations[0].title == "Rolling back"
    assert (answer.status, answer.usage.total_tokens > 0, answer.corecube["outcome"]) == ("completed", True, "asserted")
    stored = Message.objects.get(pk=answer.id.removeprefix("resp_"))
    assert (stored.text, stored.conversation.user, stored.state) == (answer.output_text, world.bob, "done")
    again = bob.retrieve(answer.id)
    assert (again.output_text, again.output[0].content[0].annotations) == (answer.output_text, part.annotations)


def test_its_stream_has_the_same_answer_in_typed_events(bob):
    events = list(bob.create(**QUESTION, stream=True))
    assert [it.sequence_number for it in events] == list(range(len(events)))
    kinds = [it.type.removeprefix("response.") for it in events]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert kinds[-4:] == ["output_text.done", "content_part.done", "output_item.done", "completed"]
    whole = events[-1].response
    assert "".join(it.delta for it in events if it.type == "response.output_text.delta") == whole.output_text
    assert whole.output_text == bob.create(**QUESTION).output_text
    assert Message.objects.get(pk=whole.id.removeprefix("resp_")).state == "done"


def test_a_response_continues_its_conversation(bob):
    first = bob.create(**QUESTION)
    second = bob.create(model="corecube", input="And in production?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert "release captain" in second.output_text
    (conversation,) = Conversation.objects.all()
    assert conversation.messages.count() == 4
    assert conversation.messages.get(ordinal=3).standalone  # The follow-up was understood from the first question.
    assert bob.retrieve(second.id).previous_response_id == first.id


def test_another_way_from_the_same_response_leaves_the_first_as_it_is(bob):
    first = bob.create(**QUESTION)
    bob.create(model="corecube", input="And in production?", previous_response_id=first.id)
    bob.create(model="corecube", input="How long does the queue take?", previous_response_id=first.id)
    assert sorted(it.messages.count() for it in Conversation.objects.all()) == [4, 4]


def test_nothing_is_stored_where_that_is_not_wanted(bob):
    answer = bob.create(**QUESTION, store=False)
    assert SENTENCE in answer.output_text
    assert not Conversation.objects.exists()
    with pytest.raises(openai.NotFoundError):
        bob.retrieve(answer.id)


def test_a_conversation_as_input_is_read_and_the_last_message_answered(bob):
    given = [
        {"role": "user", "content": "How do I roll back staging?"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Run deployctl."}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"role": "user", "content": [{"type": "input_text", "text": "And in production?"}]},
    ]
    assert "release captain" in bob.create(model="corecube", input=given).output_text


def test_instructions_and_sampling_reach_the_model(bob, world):
    with FakeLLM() as llm:
        llm.says("Run deployctl rollback [1].")
        LanguageModel.objects.create(
            slug="ours", name="Ours", base_url=llm.url, model="fake-small", is_default=True, max_retries=0
        )
        answer = bob.create(**QUESTION, instructions="Be brief.", temperature=0.5, max_output_tokens=50)
        (sent,) = llm.requests
    assert "Be brief." in sent["messages"][0]["content"]
    assert (sent["temperature"], sent["max_tokens"]) == (0.5, 50)
    assert answer.output_text == "Run deployctl rollback [1]."


def test_json_is_fitted_to_a_schema(bob):
    form = {
        "type": "json_schema",
        "name": "reply",
        "schema": {"type": "object", "properties": {"reply": {"type": "string"}}, "required": ["reply"]},
    }
    assert bob.create(**QUESTION, text={"format": form}).output_text.startswith('{"reply": "')
    with pytest.raises(openai.BadRequestError) as caught:
        bob.create(**QUESTION, text={"format": {**form, "schema": {"type": "object", "required": ["days"]}}})
    assert caught.value.param == "response_format"


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    "form",
    [
        None,
        {"type": "json_object"},
        {"type": "json_schema", "name": "n", "schema": {"type": "object", "properties": {"reply": {"type": "string"}}}},
    ],
)
@pytest.mark.parametrize("asked", [QUESTION["input"], "zzz qqq", "hello"])
def test_a_response_is_read_as_it_was_sent(bob, form, is_streamed, asked):
    sent = {"model": "corecube", "input": asked, **({"text": {"format": form}} if form else {})}
    if is_streamed:
        with bob.create(**sent, stream=True) as events:
            created = next(it.response for it in events if it.type == "response.completed")
    else:
        created = bob.create(**sent)
    stored = bob.retrieve(created.id)
    assert stored.output[0].content == created.output[0].content


def test_a_required_tool_is_refused_and_an_optional_one_named(bob):
    tool = {"type": "function", "name": "f", "parameters": {}, "strict": False}
    notices = bob.create(**QUESTION, tools=[tool]).corecube["notices"]
    assert "Ignored: tools." in notices[-1]["text"]
    with pytest.raises(openai.BadRequestError):
        bob.create(**QUESTION, tools=[tool], tool_choice="required")


def test_a_response_is_deleted_with_its_question(bob):
    first = bob.create(**QUESTION)
    second = bob.create(model="corecube", input="And in production?", previous_response_id=first.id)
    bob.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        bob.retrieve(second.id)
    assert bob.retrieve(first.id).id == first.id
    bob.delete(first.id)
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("wrong", ["resp_0", "nothing", "resp_" + "0" * 32])
def test_an_unknown_response_is_not_found(bob, wrong):
    for call in (bob.retrieve, bob.delete, lambda it: bob.create(**QUESTION, previous_response_id=it)):
        with pytest.raises(openai.NotFoundError) as caught:
            call(wrong)
        assert caught.value.code == "response_not_found"


def test_nobody_reads_anothers_response_nor_what_they_may_no_longer_see(bob, connect, world):
    alice = connect(world.key("alice")).responses
    secret = alice.create(model="corecube", input="stolen passphrase breach")
    assert "zanzibar" in secret.output_text
    for call in (bob.retrieve, bob.delete, lambda it: bob.create(**QUESTION, previous_response_id=it)):
        with pytest.raises(openai.NotFoundError):
            call(secret.id)
    # A key that may see less than its user.
    key, narrow = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.add(world.ledger.compartment)
    with pytest.raises(openai.NotFoundError):
        connect(narrow).responses.retrieve(secret.id)
    assert alice.retrieve(secret.id).output_text == secret.output_text
