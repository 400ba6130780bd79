"""Every page: no serious finding of axe, no sideways scrolling, no layout shift, all within reach of the keyboard."""

from functools import partial
from urllib.parse import urlsplit

import pytest
from django.urls import get_resolver, resolve
from playwright.sync_api import expect

from tests.browser.axe import findings
from tests.browser.pages import CONFIRMATIONS, ERRORS, MODEL_PAGES, OUTSIDE, PAGES, PLAIN_PAGES, STEPS
from tests.profiles import PROFILE

#: Addresses of the console that are no pages: parts of one, and forms' targets.
NO_PAGES = {
    "preview_access",
    "change_gate",
    "change_schedule",
    "change_sweep",
    "stop_experiment",
    "measure_gates",
    "promotion_gates",
    "roll_back",
    "preview_user",
    "answer",
    "remove_rule",
    "remove_prompt",
    "set_rule",
    "remove_claim",
    "add_claim",
    "remove_route_example",
    "audit_export",
    "build_index",
    "change_active",
    "change_admin",
    "change_case",
    "change_clearance",
    "change_groups",
    "change_member",
    "change_run",
    "change_section",
    "copy_section_set",
    "cancel_job",
    "chat_answer",
    "chat_attach",
    "chat_delete",
    "chat_delete_all",
    "chat_events",
    "chat_file_remove",
    "chat_files",
    "chat_export",
    "chat_history",
    "chat_passage",
    "chat_rate",
    "chat_rename",
    "chat_retry",
    "chat_share",
    "chat_stop",
    "chat_stop_sharing",
    "compared_query",
    "connection_progress",
    "connection_access",
    "decide",
    "delete_question_set",
    "discard_draft",
    "disconnect_client",
    "dismiss_guide",
    "draw_questions",
    "export_judgments",
    "export_run",
    "find_users",
    "grade_pooled",
    "home",
    "import_judgments",
    "judge",
    "new_connection_access",
    "new_link",
    "note_use",
    "overview_jobs",
    "preset_effect",
    "queue_search",
    "retry_job",
    "save_as_case",
    "start_index",
    "start_run",
    "switch_connection",
    "sync_connection",
    "test_language_model",
    "upload",
    "user_names",
}
#: Pages that one test looks at.
_BATCH = 56
#: In which theme and at which width axe checks a page, which takes most of the time of these tests.
#: Pages take turns: the next page is checked in the next of these ways, by default five of six in none.
_LOOKS = {
    "default": [[("light", 390)], *[[]] * 5, [("dark", 1440)], *[[]] * 5],
    "nightly": [[("light", 390), ("dark", 1440), ("light", 1440), ("dark", 390)]],
}[PROFILE]
#: What a page still loads or draws by itself.
_UNSETTLED = "[hx-trigger=load], .htmx-request"
#: Focuses each link, button and field in turn and tells those that Tab passes over or whose focus cannot be seen.
_UNREACHED = """() => {
  const found = [];
  const things = "a[href], button:enabled, input:enabled:not([type=hidden]), select:enabled, textarea:enabled, summary";
  const shown = [...document.querySelectorAll(`${things}, [tabindex]:not([tabindex='-1'])`)].filter((thing) =>
    thing.checkVisibility({ visibilityProperty: true }),
  );
  const drawn = (style) => [style.outlineStyle === "none" ? "" : style.outline, style.boxShadow, style.borderColor];
  const look = (thing) =>
    [[thing], [thing, "::after"], [thing.parentElement]].map((it) => drawn(getComputedStyle(...it))).join();
  // All of them at once: a change of the focus makes the browser compute styles anew.
  document.activeElement.blur();
  const before = shown.map(look);
  for (const [place, thing] of shown.entries()) {
    thing.focus({ preventScroll: true });
    if (thing.tabIndex < 0 || thing.tabIndex > 0) found.push(`Tab passes over: ${thing.outerHTML.slice(0, 120)}`);
    else if (document.activeElement !== thing) found.push(`cannot have the focus: ${thing.outerHTML.slice(0, 120)}`);
    else if (look(thing) === before[place]) found.push(`its focus cannot be seen: ${thing.outerHTML.slice(0, 120)}`);
  }
  return found;
}"""


#: How much the page moved by itself while it loaded (the sum of its layout shifts, up to about 1 each), and what moved.
_SHIFT = """() => {
  const observer = new PerformanceObserver(() => {});
  observer.observe({ type: "layout-shift", buffered: true });
  const shifts = observer.takeRecords().filter((it) => !it.hadRecentInput);
  const moved = shifts.flatMap((it) => it.sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? node?.data));
  return [shifts.reduce((sum, it) => sum + it.value, 0), moved];
}"""
_MAX_SHIFT = 0.01
#: The buttons of a page that stand out.
_PRIMARY = "() => [...document.querySelectorAll('main .is-primary')].filter((it) => it.checkVisibility()).length"


def inspect(browser, looks, *, by_keys):
    """Yield what is wrong with the open page, at every width and with these looks, and if wanted by keyboard."""
    page = browser.page
    expect(page.locator(_UNSETTLED)).to_have_count(0)
    shift, moved = page.evaluate(_SHIFT)
    if shift >= _MAX_SHIFT:
        yield f"moved by {shift:.3f} while it loaded: {moved}"
    if page.evaluate(_PRIMARY) > 1:
        yield "more than one primary action"
    for width in (1440, 820, 390):
        browser.resize(width)
        if browser.scrolls_sideways():
            yield f"{width}: scrolls sideways"
    if by_keys:
        # After a key, the browser shows the focus wherever it goes.
        page.keyboard.press("Tab")
        yield from page.evaluate(_UNREACHED)
    for theme, width in looks:
        page.emulate_media(color_scheme=theme)
        browser.resize(width)
        yield from (f"{theme}, {width}: {line}" for line in findings(page))
    page.emulate_media(color_scheme="light")
    yield from browser.watch.complaints()


def visit(browser, pages):
    """Return what is wrong with these pages, by name and address."""
    return walk(browser, {name: partial(browser.open, address) for name, address in pages.items()})


def walk(browser, steps):
    """Return what is wrong with the pages that these steps lead to; the first is loaded without a cache."""
    wrong = []
    browser.context.new_cdp_session(browser.page).send("Network.clearBrowserCache")
    browser.page.emulate_media(reduced_motion="reduce")
    for number, (name, step) in enumerate(steps.items()):
        browser.resize(1440)
        step()
        found = inspect(browser, _LOOKS[number % len(_LOOKS)], by_keys=PROFILE == "nightly" or number % 2 == 0)
        wrong += [f"{name}: {line}" for line in found]
    return wrong


@pytest.mark.parametrize("first", range(0, len(PAGES), _BATCH))
def test_every_page_can_be_used_by_everybody(alice, places, first):
    alice.watch.expect(*ERRORS)
    wrong = visit(alice, dict(list(places.addresses(PAGES).items())[first : first + _BATCH]))
    assert not wrong, "\n".join(wrong)


def test_the_pages_of_others_can_be_used_by_everybody(start, places):
    wrong = visit(start(user="bob"), places.addresses(PLAIN_PAGES))
    assert not wrong, "\n".join(wrong)


def test_the_pages_of_a_language_model_can_be_used_by_everybody(alice, places):
    wrong = visit(alice, places.addresses(MODEL_PAGES))
    assert not wrong, "\n".join(wrong)


def test_the_pages_outside_can_be_used_by_everybody(browser):
    wrong = visit(browser, OUTSIDE)
    assert not wrong, "\n".join(wrong)


def test_the_pages_without_an_address_can_be_used_by_everybody(alice, world):
    wrong = walk(
        alice, {name: partial(step, alice.page, world.bob.pk) for name, step in {**STEPS, **CONFIRMATIONS}.items()}
    )
    assert not wrong, "\n".join(wrong)


def test_the_page_behind_signing_out_can_be_used_by_everybody(browser, settings):
    settings.CORECUBE_OIDC_ISSUER = "https://id.example.com"
    settings.CORECUBE_OIDC_AUTHORIZATION_URL = "https://id.example.com/in"
    settings.CORECUBE_OIDC_SIGN_OUT_URL = "https://id.example.com/out"
    wrong = visit(browser, {"signed-out": "/logout/done/"})
    assert not wrong, "\n".join(wrong)


def test_no_page_is_left_out(address, places):
    pages = places.addresses({**PAGES, **PLAIN_PAGES, **MODEL_PAGES})
    del pages["not-found"]
    visited = {resolve(urlsplit(address).path).url_name for address in pages.values()}
    named = {name for name in get_resolver("explorer.urls").reverse_dict if isinstance(name, str)}
    assert named - visited == NO_PAGES
