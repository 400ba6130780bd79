"""plotly.js as the browser gets it."""

import gzip
import re
from pathlib import Path

from django.contrib.staticfiles import finders
from django.test import Client

from explorer import plotly

ROOT = Path(__file__).parents[2]


def test_only_the_one_file_of_the_package_is_served():
    assert plotly.NAME.endswith(f"-{plotly.VERSION}.min.js")
    assert Path(finders.find(plotly.NAME)).read_bytes() == plotly.packaged_script().read_bytes()
    assert [name for name, _ in plotly.PlotlyFinder().list(None)] == [plotly.NAME, f"{plotly.NAME}.gz"]
    for other in ("vendor/widgetbundle.js", "widgetbundle.js", "plotly/package_data/plotly.min.js"):
        assert finders.find(other) is None


def test_browsers_keep_it_for_good_and_get_it_packed(db):
    response = Client().get(f"/static/{plotly.NAME}", headers={"Accept-Encoding": "gzip"})
    assert response.status_code == 200
    assert "immutable" in response.headers["Cache-Control"]
    assert response.headers["Content-Encoding"] == "gzip"
    content = b"".join(response.streaming_content)
    response.close()
    assert len(content) < plotly.packaged_script().stat().st_size / 2
    assert gzip.decompress(content) == plotly.packaged_script().read_bytes()


def test_other_files_are_asked_for_again(db):
    response = Client().get("/static/js/charts.js")
    response.close()
    assert "immutable" not in response.headers["Cache-Control"]


def test_the_rules_that_it_would_write_are_switched_off():
    script = plotly.packaged_script().read_text(encoding="utf-8")
    ours = (ROOT / "static/js/charts.js").read_text()
    head = (ROOT / "templates/explorer/components/_charts_head.html").read_text()
    # Every place in it that makes a style element looks for these ids first.
    made = re.findall(r'createElement\("style"\)', script)
    guards = re.findall(r'getElementById\("([0-9a-f]{64})"\)', script)
    assert len(made) == len(guards) + 1
    assert [it for it in guards if it not in ours] == []
    assert "plotly.js-style-" in script
    assert 'id="plotly.js-style-global" class="no-inline-styles"' in head


def test_every_token_that_a_figure_may_name_is_one():
    tokens = set(re.findall(r"--([a-z]+):", (ROOT / "static/css/tokens.css").read_text()))
    named = re.findall(r"\.chart-colour\.is-([a-z]+) \{ --chart-colour: var\(--([a-z]+)\); \}", _styles())
    assert len(named) > 15
    assert all(name == token and token in tokens for name, token in named)


def _styles():
    return (ROOT / "static/css/components/charts.css").read_text()
