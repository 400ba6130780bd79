"""plotly.js as the browser gets it."""

import dataclasses
import gzip
import hashlib
import re
import zipfile
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.management import CommandError, call_command
from django.test import Client

from explorer import plotly
from retrieval.encoders import fetch
from retrieval.encoders.manifest import file_sha256

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script():
    if not plotly.script_path().exists():
        pytest.skip("the script is not here: run manage.py fetch_charts")
    return plotly.script_path()


@pytest.fixture
def index(tmp_path, settings, monkeypatch):
    """Return a function that puts a wheel with a text as the script on the package index; nothing is fetched yet."""
    settings.CORECUBE_SCRIPTS_DIR = tmp_path

    def publish(text):
        def download(requirement, folder):
            assert requirement == "plotly==7.1.0"
            folder.mkdir()
            with zipfile.ZipFile(folder / "plotly.whl", "w") as wheel:
                wheel.writestr(plotly.SCRIPT.wheel.path, text)

        monkeypatch.setattr(fetch, "_pip_download", download)

    return publish


def test_the_script_is_taken_out_of_the_wheel_once(index, monkeypatch, capsys):
    script = dataclasses.replace(plotly.SCRIPT, sha256=hashlib.sha256(b"draw()").hexdigest())
    monkeypatch.setattr(plotly, "SCRIPT", script)
    index("draw()")
    assert not plotly.script_path().exists()
    call_command("fetch_charts")
    path = plotly.script_path()
    assert path.read_text() == "draw()"
    assert gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes()) == b"draw()"
    assert sorted(it.name for it in path.parent.iterdir()) == [path.name, f"{path.name}.gz"]
    index("something else")
    call_command("fetch_charts")
    assert path.read_text() == "draw()"
    assert "is ready" in capsys.readouterr().out


def test_another_file_than_the_known_one_is_not_served(index):
    index("steal()")
    with pytest.raises(CommandError, match=r"its sha256 differs\. Charts show their numbers as tables\."):
        call_command("fetch_charts")
    assert not plotly.script_path().exists()


def test_the_one_file_is_served(script):
    assert file_sha256(script) == plotly.SCRIPT.sha256
    assert plotly.NAME.endswith(f"-{plotly.SCRIPT.wheel.version}.min.js")
    assert Path(finders.find(plotly.NAME)) == script
    for other in ("vendor/widgetbundle.js", "widgetbundle.js", "plotly/package_data/plotly.min.js"):
        assert finders.find(other) is None


def test_browsers_keep_it_for_good_and_get_it_packed(db, script):
    response = Client().get(f"/static/{plotly.NAME}", headers={"Accept-Encoding": "gzip"})
    assert response.status_code == 200
    assert "immutable" in response.headers["Cache-Control"]
    assert response.headers["Content-Encoding"] == "gzip"
    content = b"".join(response.streaming_content)
    response.close()
    assert len(content) < script.stat().st_size / 2
    assert gzip.decompress(content) == script.read_bytes()


def test_other_files_are_asked_for_again(db):
    response = Client().get("/static/js/charts.js")
    response.close()
    assert "immutable" not in response.headers["Cache-Control"]


def test_the_rules_that_it_would_write_are_switched_off(script):
    script = script.read_text(encoding="utf-8")
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
