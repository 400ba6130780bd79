"""A real browser against a real server. Whatever a page complains of fails the test that opened it."""

import contextlib
import threading
from collections import defaultdict
from unittest import mock

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client
from playwright.sync_api import expect, sync_playwright

from retrieval.ingest import tasks
from retrieval.ingest.dispatch import work_until_idle
from tests.browser.chromium import chromium_path
from tests.browser.places import places  # noqa: F401 -- a fixture
from tests.browser.watch import Watch

_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"),
    # Axe makes and drops so many objects that a small heap would be collected all the time.
    "--js-flags=--min-semi-space-size=64",
)
_TIMEOUT_MS = 10_000
#: Counts what is pressed in a window, over all of its pages.
_COUNT_CLICKS = """
addEventListener("pointerdown", () => {
  sessionStorage.setItem("clicks", Number(sessionStorage.getItem("clicks") ?? 0) + 1);
}, true);
"""
expect.set_options(timeout=_TIMEOUT_MS)


class Browser:
    """A window of Chromium, and what a person does with it."""

    def __init__(self, context, address, *, is_reusable):
        self.context = context
        self.address = address
        self.is_reusable = is_reusable
        self.watch = Watch(context)
        self.page = context.new_page()

    def clear(self):
        """Leave the page, and forget the user, what the page stored, and what the test set or opened.

        For a page of the same address, as the browser would end and start a process for another.
        """
        self.page.local_storage.clear()
        self.page.session_storage.clear()
        self.context.clear_cookies()
        self.page.unroute_all()
        self.page.goto("/healthz")
        self.page.emulate_media(color_scheme="light", reduced_motion="null")
        self.page.mouse.move(0, 0)
        for other in self.context.pages[1:]:
            other.close()

    def count_clicks(self):
        """Count the clicks from here on."""
        self.is_reusable = False
        self.context.add_init_script(_COUNT_CLICKS)

    @property
    def clicks(self):
        """The clicks since they are counted."""
        return int(self.page.evaluate("sessionStorage.getItem('clicks')") or 0)

    def open(self, path):
        self.page.goto(path)

    def enter_as(self, user):
        """Come in with a session that is open already."""
        client = Client()
        client.force_login(user)
        name = django_settings.SESSION_COOKIE_NAME
        self.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": self.address}])

    def sign_in(self, name):
        self.open("/login/")
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(name[0])
        self.page.get_by_role("button", name="Sign in").click()
        self.page.locator("[data-rail]").wait_for(state="attached")

    def sign_out(self):
        self.page.locator(".account-open").click()
        self.page.get_by_role("button", name="Sign out").click()

    def go(self, group, page):
        """Follow a link of the navigation, in a group that may be closed."""
        console = self.page.get_by_role("navigation", name="Console")
        link = console.get_by_role("link", name=page, exact=True)
        if not link.is_visible():
            console.get_by_text(group, exact=True).click()
        link.click()

    def ask(self, text):
        self.page.locator("#query").fill(text)
        self.page.locator("#query").press("Enter")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def resize(self, width, height=844):
        self.page.set_viewport_size({"width": width, "height": height})

    def expect_ledgers(self, *names):
        """Wait until the ledgers of these hits are open, and no others."""
        for name in names:
            expect(self.page.locator(f"[data-panel=hit][data-name='{name}']")).to_be_visible()
        expect(self.page.locator("[data-panel=hit]:visible")).to_have_count(len(names))

    def scrolls_sideways(self):
        return self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


#: Ends the browser that runs; while it does, its event loop fills the thread.
_running = contextlib.ExitStack()
_browsers = []
#: By address, windows with the usual options that tests have cleared: a new one costs more than the page that it opens.
_cleared = defaultdict(list)


@pytest.fixture
def chromium():
    """Return Chromium, for all tests in a browser that follow each other."""
    path = chromium_path()
    if path is None:
        pytest.skip("needs chromium")
    if not _browsers:
        # Django would not ask the database beside that loop, although nothing of a test runs on it.
        _running.enter_context(mock.patch.dict("os.environ", DJANGO_ALLOW_ASYNC_UNSAFE="1"))
        playwright = _running.enter_context(sync_playwright())
        _browsers.append(playwright.chromium.launch(executable_path=path, args=_FLAGS))
        _running.callback(_browsers.clear)
        _running.callback(_cleared.clear)
        _running.callback(_browsers[0].close)
    return _browsers[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem):
    """Close the browser before the first test that has none."""
    yield
    if nextitem is None or "chromium" not in nextitem.fixturenames:
        _running.close()


@pytest.fixture
def address(live_server):
    """Return where the pages are served; a module whose pages are streamed has a server of its own."""
    return live_server.url


@pytest.fixture
def start(chromium, address, world):
    """Return a function that opens a window; what its pages complain of is asserted at the end."""
    opened = []

    def started(*, user=None, width=1440, **options):
        size = {"width": width, "height": 1000 if width > 600 else 844}
        if _cleared[address] and not options:
            browser = _cleared[address].pop()
            browser.page.set_viewport_size(size)
            browser.watch.forget()
        else:
            context = chromium.new_context(
                **{"base_url": address, "viewport": size, "color_scheme": "light", **options}
            )
            context.set_default_timeout(_TIMEOUT_MS)
            browser = Browser(context, address, is_reusable=not options)
        opened.append(browser)
        if user:
            browser.enter_as(getattr(world, user))
        return browser

    yield started
    complaints = [line for browser in opened for line in browser.watch.complaints()]
    for browser in opened:
        if browser.is_reusable and browser.page.url.startswith(address):
            browser.clear()
            _cleared[address].append(browser)
        else:
            browser.context.close()
    assert complaints == []


@pytest.fixture
def browser(start):
    """Return a window in which nobody has signed in."""
    return start()


@pytest.fixture
def alice(start):
    """Return the admin's window."""
    return start(user="alice")


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    """Send nothing to a queue; whoever works looks by himself."""
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)


@pytest.fixture
def worker(live_server):
    """Return a function that sets a worker to work, in a thread of its own."""
    stopping = threading.Event()

    def work():
        while not stopping.wait(0.1):
            work_until_idle()
        connection.close()

    thread = threading.Thread(target=work, name="worker")
    yield thread.start
    stopping.set()
    if thread.ident:
        thread.join()
