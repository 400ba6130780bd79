"""Pickers: what is chosen stays chosen, and is what every next run asks for."""

import re
import time
from collections import defaultdict
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from lxml import html
from playwright.sync_api import expect

from retrieval.admin.preset_versions import save_draft
from retrieval.models import PresetVersion, SearchRecord
from retrieval.presets.catalog import TUNED
from tests.browser.pages import ERRORS, PAGES
from tests.profiles import PROFILE, turn

#: Options that are tried of one picker; those of longer lists are spread over all of it.
_TRIED = {"default": 1, "nightly": 6}[PROFILE]
#: The paths of the pages that have the most choices.
_LARGEST = ("/explorer/", "/compare/")
#: The form whose choices are part of the page's address; runs and sweeps are chosen on one page for another.
_FORM = """[...document.forms].find(
  (it) => it.method === "get" && !it.matches("[action$='/runs/compare/'], [action$='/sweeps/new/']")
    && [...it.elements].some((its) => its.matches("select, [type=checkbox], [type=radio]"))
)"""
_PICKERS = f"""() => [...({_FORM}?.elements ?? [])]
  .filter((it) => it.matches("select, [type=checkbox], [type=radio]"))
  .map((it) => ({{
    name: it.name,
    value: it.value,
    options: it.options ? [...it.options].map((option) => option.value) : null,
    path: new URL(it.form.getAttribute("action") ?? "", document.URL).pathname,
    runs: "submits" in it.dataset || (it.form.getAttribute("hx-trigger") ?? "").includes("change"),
  }}))"""
_FORMS = "//form[@method='get'][not(contains(@action, '/runs/compare/') or contains(@action, '/sweeps/new/'))]"
#: What the form would ask for, by name.
_SHOWN = f"""(names) => {{
  const data = new FormData({_FORM});
  return Object.fromEntries(names.map((name) => [name, data.getAll(name).filter(Boolean).sort()]));
}}"""
#: htmx restores a page of the history without marking its request.
_WATCH = """() => {
  window.isRestored = false;
  document.addEventListener("htmx:historyRestore", () => (window.isRestored = true), { once: true });
}"""
_RUN = f"() => {{ const form = {_FORM}; form.requestSubmit([...form.querySelectorAll('[type=submit]')].at(-1)); }}"
#: What a page still loads by itself.
_UNSETTLED = "[hx-trigger=load], .htmx-request"


class Page:
    """A page whose form filters or searches, and what was wrong with the form's pickers."""

    def __init__(self, browser, address):
        self.page, self.address, self.wrong = browser.page, address, []
        self.loads = 0
        self.page.on("load", self.count_load)
        self.open()

    def count_load(self, _page):
        self.loads += 1

    def wait_for(self, condition):
        """Wait until a condition holds that the page's policy keeps Playwright from looking at by itself."""
        ends = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < ends
            self.page.wait_for_timeout(20)

    def open(self):
        self.page.goto(self.address)
        expect(self.page.locator(_UNSETTLED)).to_have_count(0)
        query = self.page.locator("#query")
        if query.count() and not query.input_value().strip():
            query.fill("rollback")
        self.names = sorted({it["name"] for it in self.pickers()})
        self.is_as_opened = True

    def pickers(self):
        return self.page.evaluate(_PICKERS)

    def shown(self):
        return self.page.evaluate(_SHOWN, self.names)

    def named_by(self, address):
        named = parse_qs(urlsplit(address).query)
        return {name: sorted(named.get(name, ())) for name in self.names}

    def after(self, act, path):
        """Act, wait until the page has its answer from this path, and return the answer."""

        def answers(response):
            is_page = response.request.resource_type in {"document", "xhr"} and not 300 <= response.status < 400
            return is_page and urlsplit(response.url).path == path

        self.page.evaluate(_WATCH)
        loads = self.loads
        with self.page.expect_response(answers) as found:
            act()
        if found.value.request.resource_type == "document":
            self.wait_for(lambda: self.loads > loads)
        elif "hx-history-restore-request" in found.value.request.headers:
            self.wait_for(lambda: self.page.evaluate("window.isRestored"))
        expect(self.page.locator(_UNSETTLED)).to_have_count(0)
        return found.value

    def choose(self, picker, option):
        field = self.page.locator(
            f"[name='{picker['name']}']:is(select, [type][value='{picker['value']}']:not([type=hidden]))"
        )
        field.evaluate("it => it.closest('details')?.setAttribute('open', '')")
        if picker["options"]:
            field.select_option(option)
        else:
            field.click()
        if not picker["runs"]:
            self.run()

    def run(self):
        self.page.evaluate(_RUN)

    def try_option(self, picker, option):
        """Choose an option, run again, and note where picker, address and search differ."""
        self.is_as_opened = False
        for act in (lambda: self.choose(picker, option), self.run):
            answer = self.after(act, picker["path"])
            shown = self.shown()
            said = {"request": self.named_by(answer.url), "address": self.named_by(self.page.url)}
            if picker["path"] == "/explorer/" and answer.ok:
                said["search"] = shown | searched()
            if picker["options"]:
                said["choice"] = shown | {picker["name"]: [option] if option else []}
            self.note(f"{picker['name']} {option!r}", shown, said)

    def try_moves(self, path):
        """Reload, go back and forward: the pickers always show what the address names."""
        reload, back, forward = self.page.reload, self.page.go_back, self.page.go_forward
        for move in (reload, back, back, forward, reload) if PROFILE == "nightly" else (reload, back, forward):
            self.after(move, path)
            shown = self.shown()
            said = {name: value for name, value in self.named_by(self.page.url).items() if f"{name}=" in self.page.url}
            self.note(move.__name__, shown, {"address": shown | said})

    def note(self, what, shown, said):
        self.wrong += [f"{self.page.url}, {what}: shown {shown}, {who} {it}" for who, it in said.items() if it != shown]


def searched():
    """Return what the last search was made with, by the names of the Explorer's pickers."""
    record = SearchRecord.objects.select_related("user").first()
    return {
        "preset": [record.preset],
        "mode": [record.trace.get("mode", "hybrid")],
        "as": [record.user.username],
        "draft": ["1"] if record.trace.get("is_draft") else [],
    }


def tried(picker, known):
    """Return the options to choose one after the other; the last alone of a picker that another page has, too."""
    options = [it for it in picker["options"] or ["on", "off"] if it != picker["value"]]
    if (picker["path"], picker["name"]) in known:
        return options[-1:]
    return options[:: -(-len(options) // _TRIED)] if options else []


def walk(browser, address, known, number):
    """Return what is wrong with the pickers of a page, of which some are known from the pages before."""
    page = Page(browser, address)
    pickers = page.pickers()
    new = {(it["path"], it["name"]) for it in pickers} - known
    # By default, every other page tries one of those, each another one.
    again = turn(range(len(pickers)), number, of=2 * len(pickers) or 1)
    for place, picker in enumerate(pickers):
        is_known = (picker["path"], picker["name"]) in known
        if is_known and place not in again:
            continue
        if not is_known and not page.is_as_opened:
            page.open()
        current = next((it for it in page.pickers() if it["name"] == picker["name"]), None)
        for option in tried(current, known) if current else ():
            page.try_option(current, option)
        if PROFILE == "default":
            # Of several radio buttons the first would be tried again.
            known.add((picker["path"], picker["name"]))
    if new:
        page.try_moves(pickers[0]["path"])
    known |= new
    return page.wrong


@pytest.fixture
def drafts(places, world):
    """Give every preset a draft, so that none of the choices leads to an error."""
    drafted = set(PresetVersion.objects.filter(status=PresetVersion.Status.DRAFT).values_list("preset", flat=True))
    for name in TUNED.keys() - drafted:
        save_draft(preset=TUNED[name], values={}, note="", actor=world.alice)


#: The names of the choices of each page that has some in its address, once a test has looked for them.
_choices = {}


@pytest.fixture
def filtered(places, drafts, world):
    """Return the addresses of the pages whose choices are part of their addresses, by path."""
    addresses, found = places.addresses(PAGES), defaultdict(list)
    if not _choices:
        client = Client()
        client.force_login(world.alice)
        named = {name: choices(client.get(address).content) for name, address in addresses.items()}
        _choices.update({name: names for name, names in named.items() if names})
    for name, names in _choices.items():
        found[urlsplit(addresses[name]).path].append((addresses[name], names))
    return found


def choices(content):
    """Return the names of the choices in a page's forms that are part of its address."""
    forms = html.fromstring(content).xpath(_FORMS)
    picked = ".//select/@name | .//input[@type='checkbox' or @type='radio']/@name"
    return {str(name) for form in forms for name in form.xpath(picked)}


def visited(pages):
    """Return the addresses to visit: by default those with a choice that none before them has, and every eighth."""
    known = set()
    for number, (address, names) in enumerate(pages):
        if PROFILE == "nightly" or number % 8 == 0 or not names <= known:
            yield address
        known |= names


@pytest.mark.parametrize("path", [*_LARGEST, "others"])
def test_what_is_chosen_is_what_every_next_run_asks_for(alice, filtered, path):
    alice.watch.expect(*ERRORS)
    of_path = {it: pages for it, pages in filtered.items() if path == (it if it in _LARGEST else "others")}
    wrong, known = [], set()
    for number, address in enumerate(it for pages in of_path.values() for it in visited(pages)):
        wrong += walk(alice, address, known, number)
    assert known
    assert not wrong, "\n".join(wrong)


def test_the_picker_that_ran_a_search_keeps_the_focus(alice):
    page = Page(alice, "/explorer/?q=rollback")
    (mode,) = (it for it in page.pickers() if it["name"] == "mode")
    page.page.locator(".options-open").click()
    page.page.locator("#mode").focus()
    page.after(lambda: page.choose(mode, "dense"), "/explorer/")
    expect(page.page.locator("#mode")).to_be_focused()
    expect(page.page.locator("#mode")).to_have_value("dense")


def test_a_choice_whose_search_was_given_up_is_not_shown(alice):
    page, held = Page(alice, "/explorer/?q=rollback"), []
    page.page.route(re.compile("preset=helix"), lambda route: held.append(route))  # noqa: PLW0108 -- needs attributes
    page.page.locator("#preset").select_option("helix")
    page.page.locator(".sources-open").click()
    page.after(page.page.locator("a.source", has_text="Runbooks").click, "/explorer/")
    expect(page.page).to_have_url(re.compile("without=runbooks"))
    assert len(held) == 1
    expect(page.page.locator("#preset")).to_have_value("corecube")
    # htmx reports the request that it gave up.
    assert all("htmx:" in line for line in alice.watch.complaints())


_ENTERED = (
    "(form) => [...new FormData(document.querySelector(form))].filter(([name]) => name !== 'csrfmiddlewaretoken')"
)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("#connection-form", "connection-edit"),
        ("#connection-form", "connection-new"),
        ("#model-form", "language-model"),
    ],
)
def test_a_check_leaves_a_form_as_it_was_filled_in(alice, places, form, name):
    page = alice.page
    alice.watch.expect(*ERRORS)
    alice.open(places.addresses(PAGES)[name])
    # Some are in a later step.
    for field in page.locator(f"{form} select").all():
        field.select_option(field.locator("option").last.get_attribute("value"), force=True)
    expect(page.locator(_UNSETTLED)).to_have_count(0)
    entered = page.evaluate(_ENTERED, form)
    for _ in range(2):
        with page.expect_response(lambda it: it.request.method == "POST"):
            page.locator(f"{form} button[hx-post]").last.dispatch_event("click")
        expect(page.locator(_UNSETTLED)).to_have_count(0)
        assert page.evaluate(_ENTERED, form) == entered
