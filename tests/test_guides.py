"""The requests that the guides show, sent to a running server as they are written."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from corecube.keys import allow_forwarding
from corecube.models import ApiKey, Compartment, Connection
from retrieval.models import Document, SearchRecord

GUIDES = Path(__file__).parent.parent / "docs" / "guides"
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITH_CURL = [
    (page.stem, block)
    for page in sorted(GUIDES.glob("*.md"))
    for block in BLOCK.findall(page.read_text())
    if block.startswith("curl ")
]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize(("page", "block"), WITH_CURL, ids=[page for page, _ in WITH_CURL])
def test_requests_by_curl_succeed(server, world, page, block):
    for slug, kind in (("tickets", "push"), ("wiki", "folder")):
        Connection.objects.create(
            slug=slug, name=slug, kind=kind, compartment=world.runbooks.compartment, sensitivity=1
        )
    Compartment.objects.filter(pk=world.runbooks.compartment_id).update(slug="operations")
    document = Document.objects.get(external_id="rollback.md")
    secret = world.key("alice")
    written = {
        "https://host": server,
        "localhost:8000": server,
        "cc_...": secret,
        "$KEY": secret,
        "6d0a...": document.pk,
    }
    script = re.sub(r"^manage\.py .*$", "", block, flags=re.MULTILINE)
    script = script.replace("curl ", "curl --no-progress-meter --fail-with-body ")
    for name, value in written.items():
        script = script.replace(name, str(value))
    done = subprocess.run(["bash", "-e", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{page}: {done.stdout}{done.stderr}"


def test_a_front_end_acts_for_its_user_as_the_guide_shows(server, world):
    (block,) = [it for it in BLOCK.findall((GUIDES / "access.md").read_text()) if "headers_for" in it]
    key, secret = ApiKey.issue(user=world.alice, name="front end")
    code = block.replace("https://search.example.org", server).replace('"maya"', '"bob"')
    names = {
        "FORWARDING_SECRET": allow_forwarding(key, actor=world.alice),
        "API_KEY": secret,
        "messages": [{"role": "user", "content": "rollback staging"}],
    }
    exec(code, names)
    names["client"].close()
    assert SearchRecord.objects.get().user == world.bob
