"""Charts in a real browser: drawn under the strict policy, in both themes, with their numbers in a table."""

import pytest
from playwright.sync_api import expect

PAGES = [
    "/?q=rollback&tab=trace",
    "/?q=rollback&tab=scores",
    "/compare/?q=rollback&a=corecube:live:dense",
    "/side-by-side/?q=rollback&whole=1",
]


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


@pytest.mark.parametrize("path", PAGES)
def test_without_javascript_a_chart_is_its_table(start, path):
    browser = start(user="alice", java_script_enabled=False)
    browser.open(path)
    expect(browser.page.locator(".chart table:visible").first).to_be_visible()
