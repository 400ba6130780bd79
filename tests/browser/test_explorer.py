"""The Query Explorer in a real browser."""

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.browser


def keys(browser, *pressed):
    for key in pressed:
        ActionChains(browser.driver).send_keys(key).perform()


def open_ledger(browser):
    return [panel.get_attribute("data-name") for panel in browser.shown("[data-panel=hit]")]


@pytest.fixture
def searched(browser):
    """Return a browser in which Alice has searched."""
    browser.sign_in("alice")
    browser.run("window.sameDocument = true")
    browser.ask("rollback")
    browser.until(lambda: browser.all("[data-hits]"))
    return browser


def test_a_search_replaces_only_the_results(searched):
    assert searched.run("return window.sameDocument")
    assert "q=rollback" in searched.driver.current_url
    assert "hit" in searched.find("#announcement").get_attribute("textContent")
    assert searched.complaints() == []


def test_the_keyboard_walks_through_the_hits(searched):
    searched.run("document.activeElement.blur()")
    assert open_ledger(searched) == ["1"]
    keys(searched, "j", "j")
    assert open_ledger(searched) == ["3"]
    keys(searched, "k")
    assert open_ledger(searched) == ["2"]
    assert "hit=2" in searched.driver.current_url
    assert searched.driver.switch_to.active_element.get_attribute("data-name") == "2"
    keys(searched, Keys.ARROW_DOWN)
    assert open_ledger(searched) == ["3"]
    keys(searched, "/")
    assert searched.driver.switch_to.active_element.get_attribute("id") == "query"
    keys(searched, "j")
    assert open_ledger(searched) == ["3"]


def test_a_shared_address_opens_what_was_open(searched):
    keys(searched, Keys.TAB)
    searched.find("[data-switch=tab][data-name=trace]").click()
    searched.driver.refresh()
    assert [view.get_attribute("data-name") for view in searched.shown("[data-panel=tab]")] == ["trace"]


def test_a_connection_is_excluded_and_the_open_tab_stays(searched):
    searched.find("[data-switch=tab][data-name=context]").click()
    before = searched.find(".passages").text
    assert "Runbooks" in before
    searched.find("a.chip[title*=Engineering]").click()
    searched.until(lambda: searched.all("a.chip.is-off"))
    assert "without=" in searched.driver.current_url
    assert "tab=context" in searched.driver.current_url
    assert searched.find(".passages").is_displayed()
    assert searched.find(".passages").text != before
    searched.driver.back()
    searched.until(lambda: not searched.all("a.chip.is-off"))
    assert searched.complaints() == []


def test_a_stage_opens_and_closes(searched):
    cell = "[data-switch=stage][data-name=fuse]"
    searched.find(cell).click()
    assert "fusion.rank_constant" in searched.shown("[data-panel=stage]")[0].text
    searched.find(cell).click()
    assert searched.shown("[data-panel=stage]") == []
    assert "stage=" not in searched.driver.current_url


def test_another_person_sees_another_scope(searched):
    searched.run(
        "const as = document.querySelector('[name=as]'); as.value = 'bob';"
        "as.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    searched.until(lambda: "as=bob" in searched.driver.current_url)
    searched.until(lambda: searched.all(".chip.is-closed"))
    assert searched.complaints() == []


def test_an_error_is_shown_in_the_place_of_the_results(searched):
    searched.ask("   ")
    searched.until(lambda: searched.all("#results [role=alert]"))
    assert searched.run("return window.sameDocument")
    assert "The query is empty." in searched.find("#results").text


def test_a_citation_opens_the_document_at_its_passage(searched):
    next(tab for tab in searched.all(".tab") if tab.text == "Answer").click()
    searched.until(lambda: searched.find(".citation").is_displayed())
    assert "tab=answer" in searched.driver.current_url
    searched.find(".citation").click()
    searched.until(lambda: searched.all(".chunk"))
    assert searched.run("return document.querySelector(':target').id").startswith("chunk-")
    assert searched.complaints() == []


@pytest.mark.parametrize(
    "path", ["/", "/?q=rollback", "/?q=rollback&hit=2&stage=assemble", "/?q=rollback&tab=trace", "/sources/",
             "/sources/runbooks/", "/sources/new/", "/presets/", "/presets/corecube/"],
)  # fmt: skip
@pytest.mark.parametrize("width", [390, 820])
def test_no_page_scrolls_sideways(browser, path, width):
    browser.resize(width, 844)
    browser.sign_in("alice")
    browser.open(path)
    assert not browser.scrolls_sideways()
    assert browser.complaints() == []


def test_a_ledger_opens_below_its_hit_on_a_phone(browser):
    browser.resize(390, 844)
    browser.sign_in("alice")
    browser.open("/?q=rollback")
    assert open_ledger(browser) == []
    browser.find("[data-switch=hit][data-name='2']").click()
    assert open_ledger(browser) == ["2"]
    ledger, below = browser.find("#ledger-2").rect, browser.all("[data-hit-card]")[2].rect
    assert ledger["y"] + ledger["height"] <= below["y"] + 1
    assert not browser.scrolls_sideways()


def test_the_chosen_theme_is_kept(browser):
    browser.sign_in("bob")
    browser.find("[data-theme-choice=dark]").click()
    browser.driver.refresh()
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    assert browser.run("return getComputedStyle(document.body).backgroundColor") is not None
    assert browser.find("[data-theme-choice=dark]").get_attribute("aria-pressed") == "true"
    browser.find("[data-theme-choice=auto]").click()
    assert browser.run("return 'theme' in document.documentElement.dataset") is False


def test_everything_can_be_read_without_javascript(start):
    browser = start(javascript=False)
    browser.sign_in("alice")
    browser.ask("rollback")
    browser.until(lambda: browser.all("[data-hits]"))
    browser.find("[data-switch=hit][data-name='2']").click()
    assert open_ledger(browser) == ["2"]
    browser.find("[data-switch=tab][data-name=context]").click()
    assert browser.shown(".passages")
    browser.find("a.chip[title*=Engineering]").click()
    assert browser.all("a.chip.is-off")
