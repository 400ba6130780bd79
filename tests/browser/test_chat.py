"""The chat page in a real browser, served as it is served for real: its answers are streamed."""

import re
import socket
import threading
import time

import pytest
import uvicorn
from django.db import connection, transaction
from django.utils import timezone
from playwright.sync_api import expect

from corecube.models import Connection
from retrieval.models import Chunk, Conversation, Impression, Judgment, Message, SearchRecord
from tests.browser.axe import findings
from tests.fake_llm import FakeLLM, Fault
from tests.race import until

# WhiteNoise serves files by iterators that are not asynchronous.
pytestmark = pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume synchronous iterators:Warning")

QUESTION = "How do I roll back the staging database?"
WRITTEN = (
    "Run **deployctl rollback** first [1].\n\n- Draining takes four minutes [2].\n- The colony on Mars hears of it [2]."
)


@pytest.fixture(scope="module")
def listening():
    """Listen at one address for all tests, so that they can follow each other in one window."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def address(transactional_db, settings, listening):
    """Serve as `manage.py start` does: the threaded server of Django's own tests would send no stream."""
    from corecube.asgi import application

    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    server = uvicorn.Server(uvicorn.Config(application, lifespan="off", log_level="warning"))
    thread = threading.Thread(target=server.run, args=[[listening.dup()]], name="server")
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=10)


@pytest.fixture
def model(settings):
    """A language model that answers by default."""
    with FakeLLM() as model:
        settings.CORECUBE_LLM_URL, settings.CORECUBE_LLM_MODEL = model.url, "fake-small"
        model.says(WRITTEN)
        yield model


@pytest.fixture
def bob(start):
    return start(user="bob")


def ask(browser, text=QUESTION):
    """Ask, and return the exchange once its answer is there."""
    exchange = asked(browser, text)
    expect(exchange).not_to_have_attribute("data-state", re.compile("waiting|writing"))
    return exchange


def asked(browser, text=QUESTION):
    page = browser.page
    before = page.locator("[data-exchange]").count()
    page.get_by_label("Question", exact=True).fill(text)
    browser.press("Enter")
    exchange = page.locator("[data-exchange]").nth(before)
    exchange.wait_for()
    return exchange


def test_the_preset_and_the_sources_stay_for_every_next_question(start, world):
    alice = start(user="alice")
    page = alice.page
    alice.open("/chat/")
    page.locator("select[name=preset]").select_option("helix")
    page.locator("[data-picker] summary").click()
    page.get_by_role("checkbox", name="Vault").uncheck()
    sources = {world.runbooks.pk, world.ledger.pk}
    for _ in range(2):
        ask(alice)
        record = SearchRecord.objects.first()
        assert (record.preset, set(record.connection_ids)) == ("helix", sources)
        expect(page.locator("select[name=preset]")).to_have_value("helix")
        expect(page.locator("[data-picked]")).to_have_text("2 of 3 sources")
    page.reload()
    expect(page.locator("select[name=preset]")).to_have_value("helix")
    expect(page.locator("[data-picked]")).to_have_text("2 of 3 sources")
    assert SearchRecord.objects.count() == 2


def test_an_answer_quotes_its_sources_and_stays_where_it_was_asked(bob):
    bob.open("/chat/")
    exchange = ask(bob)
    expect(exchange).to_have_attribute("data-state", "done")
    expect(exchange.locator("[data-text]")).to_contain_text("deployctl rollback")
    expect(exchange.locator(".answer-by")).to_have_text("Quoted from your documents")
    expect(exchange.get_by_label("Sources")).to_contain_text("Cited")
    conversation = Conversation.objects.get()
    expect(bob.page).to_have_url(re.compile(f"/chat/{conversation.pk}/$"))
    expect(bob.page.get_by_role("navigation", name="Your conversations").get_by_role("link")).to_have_text([QUESTION])
    expect(bob.page.locator("#announcement")).to_have_text("Answer ready, with 1 source.")
    bob.page.reload()
    expect(bob.page.locator("[data-text]")).to_contain_text("deployctl rollback")
    expect(bob.page.locator("[data-exchange]")).to_have_count(1)


def test_a_file_is_attached_answered_from_and_removed(bob, tmp_path):
    bob.open("/chat/")
    (tmp_path / "walrus.md").write_text("The walrus sleeps nineteen hours in deep water.")
    bob.page.get_by_label("Attach files").set_input_files(tmp_path / "walrus.md")
    files = bob.page.get_by_role("list", name="Attached files")
    expect(files).to_contain_text("walrus.md")
    expect(bob.page).to_have_url(re.compile(f"/chat/{Conversation.objects.get().pk}/$"))
    expect(ask(bob, "How long does the walrus sleep?").locator("[data-text]")).to_contain_text("nineteen hours")
    assert findings(bob.page) == []
    bob.page.get_by_role("button", name="Remove walrus.md").click()
    expect(files).to_be_hidden()
    expect(bob.page.locator("[data-exchange]")).to_have_count(1)


def test_a_file_goes_to_the_conversation_that_a_question_began(bob, tmp_path):
    bob.open("/chat/")
    ask(bob)
    (tmp_path / "walrus.md").write_text("The walrus sleeps nineteen hours in deep water.")
    bob.page.get_by_label("Attach files").set_input_files(tmp_path / "walrus.md")
    expect(bob.page.get_by_role("list", name="Attached files")).to_contain_text("walrus.md")
    expect(bob.page).to_have_url(re.compile(f"/chat/{Conversation.objects.get().pk}/$"))


def test_a_question_is_sent_by_enter_and_only_if_there_is_one(bob):
    bob.open("/chat/")
    field, send = bob.page.get_by_label("Question", exact=True), bob.page.get_by_role("button", name="Send")
    expect(send).to_be_disabled()
    field.fill("   ")
    bob.press("Enter")
    expect(send).to_be_disabled()
    field.fill("one")
    bob.press("Shift+Enter")
    field.press_sequentially("two")
    expect(field).to_have_value("one\ntwo")
    expect(bob.page.locator("[data-exchange]")).to_have_count(0)
    expect(send).to_be_enabled()


def test_a_chip_shows_its_card_and_opens_its_passage(bob):
    bob.open("/chat/")
    exchange = ask(bob)
    chip = exchange.locator("a.cite").first
    chip.hover()
    card = bob.page.locator("#cite-card")
    expect(card).to_contain_text("Rolling back")
    expect(card).to_contain_text("Runbooks")
    expect(card).not_to_contain_text("score")
    expect(card.locator("mark")).to_contain_text("deployctl rollback")
    bob.page.mouse.move(0, 0)
    expect(card).to_be_hidden()
    chip.focus()
    with bob.page.expect_response(re.compile("/use/")):
        bob.press("Enter")
    assert list(Impression.objects.filter(opened=True).values_list("position", "copied")) == [(1, False)]
    sheet = bob.page.get_by_role("dialog", name=re.compile("Rolling back"))
    expect(sheet.locator("[data-cited]")).to_contain_text("deployctl rollback")
    expect(sheet.locator("mark")).to_contain_text("deployctl rollback")
    expect(sheet.get_by_role("link", name="Open the document")).to_have_attribute("href", re.compile("#chunk-"))
    assert findings(bob.page) == []
    bob.press("Escape")
    expect(sheet).to_have_count(0)
    expect(chip).to_be_focused()


def test_a_card_marks_the_sentence_that_a_paraphrase_is_cited_for(bob, model):
    table = "| Step | Minutes |\n| --- | --: |\n| Drain | 4 |"
    model.says(f"## Steps\n\nIt is drained in about four minutes, as one knows [2].\n\n{table}")
    bob.open("/chat/")
    exchange = ask(bob)
    expect(exchange.get_by_role("table")).to_contain_text("Drain")
    exchange.locator("a.cite").first.hover()
    expect(bob.page.locator("#cite-card mark")).to_contain_text("four minutes")
    bob.page.mouse.move(0, 0)
    exchange.locator("a.cite").first.click()
    expect(bob.page.locator(".passage-words mark")).to_contain_text("four minutes")


def test_a_cited_row_is_marked_in_its_table(bob, model):
    table = "Step | Minutes\nOpen the gate | 1\nDrain the queue | 4\nClose the gate | 2"
    Chunk.objects.filter(text__contains="four minutes").update(text=f"How long it takes.\n\n{table}")
    model.says("To drain the queue takes 4 minutes [2].")
    bob.open("/chat/")
    exchange = ask(bob)
    exchange.locator("a.cite").first.hover()
    card = bob.page.locator("#cite-card")
    expect(card.get_by_role("row")).to_have_text(["StepMinutes", "Drain the queue4", "Close the gate2"])
    expect(card.locator("mark")).to_have_text(["Drain the queue", "4"])
    bob.page.mouse.move(0, 0)
    exchange.locator("a.cite").first.click()
    expect(bob.page.locator("[data-passage] tr:has(mark)")).to_have_text("Drain the queue4")
    assert findings(bob.page) == []


def test_the_rows_that_a_citation_is_about_are_marked(bob, model):
    rows = ["Open the gate | 1", "Drain the queue | 4"]
    table = "\n".join(("Step | Minutes", *rows, "Close the gate | 2"))
    Chunk.objects.filter(text__contains="four minutes").update(text=f"How long it takes.\n\n{table}")
    quoted = "\n".join(f"| {row} |" for row in ("Step | Minutes", "--- | ---", *rows))
    model.says(f"{quoted}\n\n[2]")
    bob.open("/chat/")
    exchange = ask(bob)
    exchange.locator("tbody a.cite").last.hover()
    card = bob.page.locator("#cite-card")
    expect(card.locator("mark")).to_have_text(["Drain the queue", "4"])
    exchange.locator("a.cite").last.hover()
    expect(card.locator("mark")).to_have_text(["Open the gate", "1", "Drain the queue", "4"])
    exchange.locator("a.cite").last.click()
    expect(bob.page.locator("[data-passage] tr:has(mark)")).to_have_text(["Open the gate1", "Drain the queue4"])


def test_a_finger_shows_the_card_first_and_opens_the_passage_from_it(bob, start):
    bob.open("/chat/")
    ask(bob)
    phone = start(user="bob", width=390, has_touch=True)
    phone.open(f"/chat/{Conversation.objects.get().pk}/")
    phone.page.locator("a.cite").first.tap()
    card = phone.page.locator("#cite-card")
    expect(card.locator("mark")).to_contain_text("deployctl rollback")
    assert findings(phone.page) == []
    card.get_by_role("button", name="Open the passage").tap()
    expect(phone.page.get_by_role("dialog", name=re.compile("Rolling back"))).to_be_visible()
    expect(card).to_be_hidden()


def test_a_conversation_is_shared_and_the_link_revoked(bob, start):
    bob.open("/chat/")
    ask(bob)
    bar = bob.page.locator("#chat-menu")
    expect(bar.get_by_role("link", name="Export as Markdown")).to_be_visible()
    bar.locator(".share-open").click()
    bar.get_by_role("button", name="Create link").click()
    link = bar.get_by_label("Link for people in your organization").input_value()
    assert findings(bob.page) == []
    alice = start(user="alice")
    alice.open(link)
    expect(alice.page.locator("[data-text]")).to_contain_text("deployctl rollback")
    alice.page.locator("a.cite").first.hover()
    expect(alice.page.locator("#cite-card mark")).to_contain_text("deployctl rollback")
    bar.get_by_role("button", name="Stop sharing").click()
    expect(bar.get_by_role("button", name="Create link")).to_be_visible()
    assert alice.page.request.get(link).status == 404


def test_a_language_models_answer_is_streamed_checked_and_marked(bob, model):
    model.fault, model.drip_seconds = Fault.SLOW_DRIP, 0.15
    bob.open("/chat/")
    exchange = asked(bob)
    expect(exchange.locator("[data-text] strong")).to_have_text("deployctl rollback")
    expect(exchange).to_have_attribute("data-state", "waiting")
    expect(bob.page.locator("#announcement")).to_have_text("Writing the answer.")
    expect(exchange).to_have_attribute("data-state", "done")
    expect(exchange.locator("a.cite")).to_have_text(["1", "2", "2"])
    expect(exchange.locator(".doubt")).to_contain_text(["The colony on Mars"])
    exchange.locator(".doubt-button").last.hover()
    expect(exchange.locator(".doubt-why").last).to_be_visible()
    for scheme in ("light", "dark"):
        bob.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert findings(bob.page) == []


def test_an_answer_is_stopped_and_asked_for_again(bob, model):
    model.fault, model.drip_seconds = Fault.SLOW_DRIP, 0.5
    bob.open("/chat/")
    exchange = asked(bob)
    expect(exchange.locator("[data-text]")).to_contain_text("deployctl")
    bob.page.get_by_role("button", name="Stop writing").click()
    expect(exchange).to_have_attribute("data-state", "stopped")
    expect(exchange.locator("[data-text]")).to_contain_text("deployctl")
    expect(exchange).not_to_contain_text("Mars")
    expect(exchange.locator(".remark")).to_have_text("You stopped this answer.")
    expect(bob.page.get_by_role("button", name="Send")).to_be_visible()
    model.fault = Fault.NONE
    exchange.get_by_role("button", name="Ask again").click()
    expect(exchange).to_have_attribute("data-state", "done")
    expect(exchange).to_contain_text("Mars")
    assert Message.objects.count() == 2


def test_a_failure_keeps_what_was_written_and_offers_to_ask_again(bob, model):
    model.then(Fault.CUT)
    bob.open("/chat/")
    exchange = ask(bob)
    expect(exchange).to_have_attribute("data-state", "failed")
    expect(exchange.locator("[data-text]")).to_contain_text("Run")
    expect(exchange.get_by_role("alert")).to_contain_text("The partial answer is saved.")
    exchange.get_by_role("button", name="Ask again").click()
    expect(exchange).to_have_attribute("data-state", "done")
    expect(exchange.get_by_role("alert")).to_have_count(0)


def test_a_model_that_fails_at_once_is_told_of(bob, model):
    model.fault = Fault.UNAUTHORIZED
    bob.open("/chat/")
    exchange = ask(bob)
    expect(exchange).to_have_attribute("data-state", "done")
    expect(exchange.locator(".answer-by")).to_have_text("Quoted from your documents")
    expect(exchange.locator(".remark", has_text="is unavailable")).to_be_visible()


def test_a_refusal_says_so_and_offers_what_is_near(bob):
    bob.open("/chat/")
    exchange = ask(bob, "Who is the quokka of Ulaanbaatar?")
    expect(exchange.locator(".is-refused")).to_have_text("Not found in your documents")
    expect(exchange.get_by_label("Sources").get_by_role("link").first).to_be_visible()


def test_thumbs_become_feedback_and_judgments(bob):
    bob.open("/chat/")
    exchange = ask(bob)
    good = exchange.get_by_role("button", name="Good answer")
    good.click()
    expect(good).to_have_attribute("aria-pressed", "true")
    expect(good).to_be_focused()
    source = exchange.locator("[data-source]").first
    source.hover()
    source.get_by_role("button", name="Relevant source", exact=True).click()
    expect(source.get_by_role("button", name="Relevant source", exact=True)).to_have_attribute("aria-pressed", "true")
    assert SearchRecord.objects.get().feedback == 1
    assert Judgment.objects.get().by.username == "bob"
    bob.page.reload()
    expect(good).to_have_attribute("aria-pressed", "true")
    good.click()
    expect(good).to_have_attribute("aria-pressed", "false")
    assert SearchRecord.objects.get().feedback is None


def test_a_follow_up_says_what_was_searched_for(bob):
    bob.open("/chat/")
    ask(bob)
    exchange = ask(bob, "And in production?")
    expect(exchange.locator("[data-searched]")).to_contain_text("Searched for:")
    expect(bob.page.locator("[data-exchange]")).to_have_count(2)


def test_sources_are_chosen_in_the_composer(start):
    alice = start(user="alice")
    alice.open("/chat/")
    page = alice.page
    page.get_by_text("All sources").click()
    page.get_by_label("Ledger").uncheck()
    page.get_by_label("Vault").uncheck()
    expect(page.locator("[data-picked]")).to_have_text("Runbooks")
    page.get_by_label("Runbooks").click()
    expect(page.get_by_label("Runbooks")).to_be_checked()
    alice.press("Escape")
    expect(page.get_by_label("Runbooks")).to_be_hidden()
    ask(alice)
    assert Conversation.objects.get().narrowing == {"include": ["runbooks"], "exclude": []}
    page.reload()
    expect(page.locator("[data-picked]")).to_have_text("Runbooks")


def test_one_source_of_many_is_found_by_name(start, world):
    for number in range(6):
        Connection.objects.create(
            slug=f"extra-{number}",
            name=f"Extra {number}",
            kind="push",
            compartment=world.runbooks.compartment,
            sensitivity=0,
        )
    bob = start(user="bob")
    bob.open("/chat/")
    page = bob.page
    page.locator("[data-picker] summary").click()
    find = page.get_by_role("searchbox", name="Find a source")
    expect(find).to_be_focused()
    find.fill("extra 2")
    bob.press("Enter")
    expect(page.get_by_role("checkbox")).to_have_count(1)
    expect(page.locator("[data-exchange]")).to_have_count(0)
    page.get_by_role("button", name="Select only these").click()
    expect(page.locator("[data-picked]")).to_have_text("Extra 2")
    find.fill("nothing")
    expect(page.get_by_text("No source matches.")).to_be_visible()
    assert findings(page) == []


def test_conversations_are_found_renamed_and_deleted(bob):
    bob.open("/chat/")
    ask(bob)
    bob.open("/chat/")
    ask(bob, "What does Q-4711 mean?")
    page = bob.page
    listed = page.get_by_role("navigation", name="Your conversations").get_by_role("link")
    expect(listed.filter(has_text="Q-4711")).to_have_attribute("aria-current", "page")
    page.get_by_label("Find a conversation").fill("staging")
    expect(listed).to_have_text([QUESTION])
    page.get_by_label("Find a conversation").fill("")
    expect(listed).to_have_count(2)
    item = page.locator(".chat-item").filter(has_text="staging")
    item.hover()
    item.locator("summary").first.click()
    item.get_by_label("Title").fill("How to go back")
    item.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("How to go back")
    page.locator("#chat-menu .menu-open").click()
    page.locator("#chat-menu").get_by_text("Delete …").click()
    page.locator("#chat-menu").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("Conversation deleted.")).to_be_visible()
    assert Conversation.objects.get().title == "What does Q-4711 mean?"


def test_an_answer_is_copied_with_its_markers(start):
    browser = start(user="bob", permissions=["clipboard-read", "clipboard-write"])
    browser.open("/chat/")
    exchange = ask(browser)
    with browser.page.expect_response(re.compile("/use/")):
        exchange.get_by_role("button", name="Copy the answer").click()
    expect(browser.page.locator("#announcement")).to_have_text("Copied.")
    assert set(Impression.objects.values_list("opened", "copied")) == {(False, True)}
    copied = browser.page.evaluate("navigator.clipboard.readText()")
    assert "deployctl rollback" in copied
    assert re.search(r"\[1\] Rolling back$", copied)


def test_on_a_phone_history_is_a_drawer_and_nothing_scrolls_sideways(start, model):
    model.says(f"{WRITTEN}\n\n| {' | '.join(f'A long heading {it}' for it in range(9))} |\n{'| --- ' * 9}|\n")
    browser = start(user="bob", width=390, has_touch=True, is_mobile=True, reduced_motion="reduce")
    page = browser.page
    browser.open("/chat/")
    exchange = ask(browser)
    assert not browser.scrolls_sideways()
    assert page.get_by_label("Question", exact=True).bounding_box()["y"] > 600
    exchange.locator("a.cite").first.tap()
    page.get_by_role("button", name="Open the passage").tap()
    sheet = page.get_by_role("dialog", name=re.compile("Rolling back"))
    assert sheet.bounding_box()["width"] == 390
    sheet.get_by_role("button", name="Close").tap()
    expect(sheet).to_have_count(0)
    drawer = page.get_by_role("complementary", name="Conversations")
    expect(drawer).to_be_hidden()
    page.get_by_role("link", name="Conversations", exact=True).tap()
    expect(drawer.get_by_role("link", name=QUESTION)).to_be_in_viewport()
    assert findings(page) == []
    drawer.get_by_role("link", name="Close conversations").tap()
    expect(drawer).to_be_hidden()


def test_without_javascript_the_answer_comes_with_the_page(start):
    browser = start(user="bob", java_script_enabled=False)
    browser.open("/chat/")
    page = browser.page
    page.get_by_label("Question", exact=True).fill(QUESTION)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("[data-text]")).to_contain_text("deployctl rollback")
    page.locator("a.cite").first.click()
    expect(page).to_have_url(re.compile("#source-"))
    page.locator("[data-source] a").first.click()
    expect(page).to_have_url(re.compile("/documents/.*#chunk-"))


def test_an_answer_whose_stream_does_not_come_is_tried_again(bob, model):
    bob.open("/chat/")
    page = bob.page
    bob.watch.left = True
    page.route("**/events/**", lambda route: route.abort())
    with page.expect_event("requestfailed"):
        exchange = asked(bob)
    page.unroute("**/events/**")
    expect(exchange).to_have_attribute("data-state", "done")
    expect(exchange).to_contain_text("Mars")
    bob.watch.complaints()


def test_an_answer_whose_stream_never_comes_is_given_up(bob, model):
    bob.open("/chat/")
    bob.watch.left = True
    bob.page.route("**/events/**", lambda route: route.abort())
    exchange = asked(bob)
    expect(exchange.locator("[data-broken]")).to_be_visible(timeout=30_000)
    bob.watch.complaints()


def test_an_answer_that_was_left_during_its_search_is_written_for_the_next_reader(bob, model):
    bob.open("/chat/")
    bob.watch.left = True
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE retrieval_chunk")
        asked(bob)
        until(lambda: Message.objects.filter(state="writing").exists())
        address = bob.page.url
        bob.page.goto("about:blank")
        time.sleep(1)
    bob.page.goto(address)
    exchange = bob.page.locator("[data-exchange]")
    expect(exchange).to_have_attribute("data-state", "done")
    expect(exchange).to_contain_text("Mars")
    bob.watch.complaints()


def test_an_answer_that_another_window_writes_comes_when_it_is_finished(bob, model):
    bob.open("/chat/")
    ask(bob)
    Message.objects.filter(role="assistant").update(state="writing", at=timezone.now())
    bob.page.reload()
    exchange = bob.page.locator("[data-exchange]")
    expect(exchange).to_contain_text("Searching the sources")
    Message.objects.filter(role="assistant").update(state="done")
    expect(exchange).to_have_attribute("data-state", "done")
    expect(exchange).to_contain_text("Mars")


def test_an_end_users_navigation_is_short_and_an_admins_is_whole(bob, start):
    groups = ["Ask", "Inspect", "Data", "Access", "System"]
    bob.open("/chat/")
    expect(bob.page.locator(".rail-heading")).to_have_text(groups[:3])
    bob.sign_out()
    expect(bob.page.get_by_role("heading", name="Sign in")).to_be_visible()
    alice = start(user="alice")
    alice.open("/explorer/")
    alice.go("Ask", "Chat")
    expect(alice.page.locator("[data-chat]")).to_be_visible()
    expect(alice.page.locator(".rail-heading")).to_have_text(groups)
