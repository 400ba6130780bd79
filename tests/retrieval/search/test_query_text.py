"""Where the words of questions are, and are not, by CORECUBE_KEEP_QUERY_TEXT."""

import logging
import re

import pytest
from django.db import connection

from retrieval.ingest import tasks
from retrieval.models import Message, QueuedSearch, SearchRecord

WORD = "quokkazanzi"
QUESTION = f"How do I roll back staging, {WORD}?"
#: A person's own: no page, API or administration shows them to anybody else.
OWN = {"retrieval_message", "retrieval_conversation"}


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)


@pytest.fixture
def ask_everywhere(world, client):
    """Return a function that asks the question in every way in which somebody can."""
    bearer = {"Authorization": f"Bearer {world.key('bob')}"}

    def post(path, body):
        response = client.post(path, body, content_type="application/json", headers=bearer)
        assert response.status_code == 200, (path, response.content)
        return response.json()

    def ask():
        client.force_login(world.bob)
        for path in ("/", "/compare/", "/side-by-side/", "/evidence/?set=report&run=1&about="):
            client.get(path if "=" in path else f"{path}?q=", {"q": QUESTION})
        client.get("/", {"q": QUESTION, "tab": "answer"})
        client.get("/answer/", {"q": QUESTION})
        client.post("/chat/", {"q": QUESTION})
        client.post("/chat/", {"q": f"{QUESTION} And then?"}, headers={"HX-Request": "true"})
        found = post("/api/v1/search", {"query": QUESTION, "explain": True})
        post("/api/v1/evidence", {"section": "history", "subject": QUESTION})
        post("/api/v1/context-pack", {"query": QUESTION})
        post("/api/v1/recall", {"query": QUESTION})
        post("/api/dify/retrieval", {"knowledge_id": "all", "query": QUESTION})
        post("/v1/chat/completions", {"model": "corecube", "messages": [{"role": "user", "content": QUESTION}]})
        rating = {"trace_id": found["trace_id"], "rating": 1, "citation": 1}
        client.post("/api/v1/feedback", rating, content_type="application/json", headers=bearer)
        answer = Message.objects.filter(role=Message.Role.ASSISTANT, state=Message.State.DONE).first()
        client.post(f"/chat/{answer.conversation_id}/rate/{answer.pk}/", {"rating": "1", "citation": "1"})

    return ask


def tables_with(word):
    """Return the tables in which a row holds a word, in any column."""
    names = [name for name in connection.introspection.table_names() if name not in OWN]
    found = set()
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f'SELECT count(*) FROM "{name}" AS it WHERE it::text ILIKE %s', [f"%{word}%"])
            if cursor.fetchone()[0]:
                found.add(name)
    return found


def test_with_the_setting_off_no_word_of_a_question_is_left_where_an_admin_can_look(
    world, ask_everywhere, settings, caplog, client
):
    settings.CORECUBE_KEEP_QUERY_TEXT = False
    with caplog.at_level(logging.DEBUG):
        ask_everywhere()
    assert SearchRecord.objects.count() > 8
    assert tables_with(WORD) == set()
    ours = [it.getMessage() for it in caplog.records if it.name.split(".")[0] in {"corecube", "retrieval", "explorer"}]
    assert [line for line in ours if WORD in line] == []
    client.force_login(world.alice)
    log = client.get("/log/").content.decode()
    assert WORD not in log
    for record in SearchRecord.objects.all():
        assert WORD not in client.get(f"/log/{record.pk}/").content.decode()


def test_with_the_setting_on_the_query_log_has_it(world, ask_everywhere, client):
    ask_everywhere()
    assert "retrieval_searchrecord" in tables_with(WORD)
    client.force_login(world.alice)
    assert WORD in client.get("/log/").content.decode()


def test_nobody_else_reads_a_conversation(world, ask_everywhere, client):
    ask_everywhere()
    message = Message.objects.filter(role=Message.Role.USER).first()
    client.force_login(world.alice)
    assert client.get(f"/chat/{message.conversation_id}/").status_code == 404
    assert not re.search(r"(?i)conversation|message|queued", client.get("/admin/").content.decode())
    assert not QueuedSearch.objects.exists()


@pytest.mark.parametrize(
    ("keeps", "days", "said"),
    [
        (True, 90, "Admins can read your questions in the query log for 90 days."),
        (True, 0, "Admins can read your questions in the query log."),
        (False, 90, "Your questions are not stored in the query log. Only you can open this conversation."),
    ],
)
def test_the_chat_page_says_who_can_read_the_questions(world, client, settings, keeps, days, said):
    settings.CORECUBE_KEEP_QUERY_TEXT, settings.CORECUBE_KEEP_SEARCHES_DAYS = keeps, days
    for person in (world.bob, world.alice):
        client.force_login(person)
        page = client.get("/chat/").content.decode()
        assert f'<p class="composer-readers" id="readers">{said}</p>' in page
        assert 'aria-describedby="readers"' in page
