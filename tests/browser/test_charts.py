"""Charts in a real browser: drawn under the strict policy, in both themes, with their numbers in a table."""

import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.profiles import turn
from tests.race import until

PAGES = [
    "/explorer/?q=rollback&tab=trace",
    "/explorer/?q=rollback&tab=scores",
    "/compare/?q=rollback&a=corecube:live:dense",
    "/side-by-side/?q=rollback&whole=1",
]
TRACE, SCORES = PAGES[:2]


def drawn(browser, path, chart="[data-chart]:visible"):
    """Open a page and return its first such chart, drawn."""
    browser.open(path)
    chart = browser.page.locator(chart).first
    chart.scroll_into_view_if_needed()
    expect(chart).to_have_class(re.compile("is-drawn"))
    return chart


def drag(page, area, begins, ends):
    """Drag with the mouse from one share of an area's width to another."""
    box = area.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * begins, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * ends, middle, steps=4)
    page.mouse.up()


def ticks(chart):
    """Return the labels of the horizontal axis, in any order."""
    return set(chart.locator(".xtick text").all_text_contents())


@pytest.mark.parametrize("path", PAGES)
def test_a_chart_is_drawn_and_can_be_read_as_a_table(alice, path):
    page = alice.page
    alice.open(path)
    charts = page.locator("[data-chart]:visible")
    expect(charts).not_to_have_count(0)
    for chart in charts.all():
        chart.scroll_into_view_if_needed()
        expect(chart.locator("svg.main-svg").first).to_be_visible()
        chart.locator("summary").click()
        expect(chart.locator("table tbody tr").first).to_be_visible()
    for width in (390, 1440):
        alice.resize(width)
        assert not alice.scrolls_sideways()


def test_a_chart_follows_the_theme(alice):
    page = alice.page
    alice.open(PAGES[0])
    ticks = page.locator("[data-chart]:visible .xtick text").first
    ticks.wait_for()
    light = ticks.evaluate("text => getComputedStyle(text).fill")
    page.locator(".account-open").click()
    page.get_by_role("button", name="Dark theme").click()
    expect(ticks).not_to_have_css("fill", light)


def test_bars_have_the_colour_of_their_group(alice):
    page = alice.page
    alice.open(PAGES[0])
    bars = page.locator("[data-chart]:visible .bars .point path")
    bars.first.wait_for(state="attached")
    fills = bars.evaluate_all("bars => bars.map((bar) => getComputedStyle(bar).fill)")
    assert len(set(fills)) > 1
    assert "rgb(0, 0, 0)" not in fills


def test_dragging_zooms_and_a_double_click_resets(alice):
    chart = drawn(alice, TRACE)
    whole = ticks(chart)
    area = chart.locator(".nsewdrag")
    drag(alice.page, area, 0.1, 0.3)
    until(lambda: ticks(chart) != whole)
    area.dblclick()
    until(lambda: ticks(chart) == whole)


def test_a_bar_that_is_pointed_at_shows_its_numbers(alice):
    chart = drawn(alice, SCORES, "#chart-contributions")
    chart.locator(".trace.bars .point path").first.hover(force=True)
    expect(chart.locator(".hovertext")).to_contain_text("Vector similarity +")


def test_the_zoom_and_the_hidden_traces_survive_another_theme(alice):
    page = alice.page
    chart = drawn(alice, SCORES, "#chart-contributions")
    bars = chart.locator(".trace.bars")
    all_bars = bars.count()
    chart.locator(".legendtoggle").first.click()
    expect(bars).to_have_count(all_bars - 1)
    drag(page, chart.locator(".nsewdrag"), 0.1, 0.5)
    zoomed = ticks(chart)
    page.locator(".account-open").click()
    page.get_by_role("button", name="Dark theme").click()
    expect(bars).to_have_count(all_bars - 1)
    until(lambda: ticks(chart) == zoomed)


def test_a_double_click_on_the_legend_shows_one_trace_alone(alice):
    chart = drawn(alice, SCORES, "#chart-contributions")
    assert chart.locator(".trace.bars").count() > 2
    chart.locator(".legendtoggle").nth(1).dblclick()
    expect(chart.locator(".trace.bars")).to_have_count(1)


def test_the_buttons_are_reached_and_used_by_the_keyboard(alice):
    page = alice.page
    chart = drawn(alice, TRACE)
    whole = ticks(chart)
    chart.get_by_role("button", name="Drag to zoom").focus()
    alice.press("Tab", "Tab", "Enter")
    until(lambda: ticks(chart) != whole)
    alice.press("Tab", "Tab", "Enter")
    until(lambda: ticks(chart) == whole)
    alice.press("Tab")
    expect(chart.get_by_role("button", name="Download image")).to_be_focused()
    alice.press("Tab", "Enter")
    expect(page.locator("[data-chart-table]:visible").first).to_have_attribute("open", "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_image_of_the_chart_is_downloaded(start, scheme, tmp_path):
    browser = start(user="alice", color_scheme=scheme)
    chart = drawn(browser, SCORES, "#chart-contributions")
    size = chart.locator("[data-chart-plot]").bounding_box()
    with browser.page.expect_download() as download:
        chart.get_by_role("button", name="Download image").click()
    assert download.value.suggested_filename == "Score breakdown.png"
    download.value.save_as(tmp_path / "chart.png")
    with Image.open(Path(tmp_path, "chart.png")) as image:
        assert image.size == (2 * size["width"], 2 * (size["height"] + 36))
        colours = image.convert("RGB").getcolors(image.width * image.height)
    commonest = [colour for _, colour in sorted(colours, reverse=True)]
    assert (commonest[0] == (255, 255, 255)) == (scheme == "light")
    # The bars are in it, in the colours of the theme.
    assert {"light": (59, 91, 219), "dark": (124, 150, 255)}[scheme] in commonest[:12]


def test_on_a_touch_screen_a_drag_scrolls_until_a_mode_is_chosen(start):
    browser = start(user="alice", width=390, has_touch=True, is_mobile=True)
    chart = drawn(browser, TRACE)
    zoom = chart.get_by_role("button", name="Drag to zoom")
    for is_active in (False, True, False):
        expect(zoom).to_have_class(re.compile("active") if is_active else re.compile("^((?!active).)*$"))
        zoom.tap()


@pytest.mark.parametrize("path", turn(PAGES, 0, of=2))
def test_a_chart_moves_nothing_when_it_is_drawn(alice, path):
    page, held = alice.page, []
    page.route("**/vendor/plotly*", lambda route, _: held.append(route))
    # A page is not loaded before the script that it has asked for is.
    with page.expect_request("**/vendor/plotly*"):
        page.goto(path, wait_until="commit")
    charts = page.locator("[data-chart]:visible")
    before = [chart.bounding_box()["height"] for chart in charts.all()]
    held[0].continue_()
    for chart in charts.all():
        chart.scroll_into_view_if_needed()
        expect(chart).to_have_class(re.compile("is-drawn"))
    assert [chart.bounding_box()["height"] for chart in charts.all()] == before


@pytest.mark.parametrize("path", turn(PAGES, 1, of=2))
def test_without_javascript_a_chart_is_its_table(start, path):
    browser = start(user="alice", java_script_enabled=False)
    browser.open(path)
    expect(browser.page.locator(".chart table:visible").first).to_be_visible()
