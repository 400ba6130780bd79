"""plotly.js as the browser gets it."""

import gzip
import hashlib
import re
from pathlib import Path

from django.test import Client

ROOT = Path(__file__).parents[2]
HEAD = (ROOT / "templates/explorer/components/_charts_head.html").read_text()
SCRIPT = ROOT / "static" / re.search(r"vendor/plotly-[\w.-]+", HEAD)[0]


def test_its_name_changes_with_its_content():
    content = SCRIPT.read_bytes()
    assert f".{hashlib.sha256(content).hexdigest()[:12]}." in SCRIPT.name
    assert gzip.decompress(SCRIPT.with_name(f"{SCRIPT.name}.gz").read_bytes()) == content
    assert [it.name for it in sorted(SCRIPT.parent.glob("plotly*.js*"))] == [SCRIPT.name, f"{SCRIPT.name}.gz"]


def test_browsers_keep_it_for_good_and_get_it_packed(db):
    response = Client().get(f"/static/vendor/{SCRIPT.name}", headers={"Accept-Encoding": "gzip"})
    assert response.status_code == 200
    assert "immutable" in response.headers["Cache-Control"]
    assert response.headers["Content-Encoding"] == "gzip"
    content = b"".join(response.streaming_content)
    response.close()
    assert len(content) < 400_000
    assert gzip.decompress(content) == SCRIPT.read_bytes()


def test_other_files_are_asked_for_again(db):
    for path in ("/static/js/charts.js", "/static/vendor/htmx.min.js"):
        response = Client().get(path)
        response.close()
        assert "immutable" not in response.headers["Cache-Control"]


def test_it_evaluates_no_text():
    assert re.findall(r"new Function\b|\beval\(", SCRIPT.read_text(encoding="utf-8")) == []


def test_the_rules_that_it_would_write_are_switched_off():
    script = SCRIPT.read_text(encoding="utf-8")
    ours = (ROOT / "static/js/charts.js").read_text()
    # Every place in it that makes a style element looks for these ids first.
    made = re.findall(r'createElement\("style"\)', script)
    guards = re.findall(r'getElementById\("([0-9a-f]{64})"\)', script)
    assert len(made) == len(guards) + 1
    assert [it for it in guards if it not in ours] == []
    assert "plotly.js-style-" in script
    assert 'id="plotly.js-style-global" class="no-inline-styles"' in HEAD


def test_every_token_that_a_figure_may_name_is_one():
    tokens = set(re.findall(r"--([a-z]+):", (ROOT / "static/css/tokens.css").read_text()))
    named = re.findall(r"\.chart-colour\.is-([a-z]+) \{ --chart-colour: var\(--([a-z]+)\); \}", _styles())
    assert len(named) > 15
    assert all(name == token and token in tokens for name, token in named)


def _styles():
    return (ROOT / "static/css/components/charts.css").read_text()
