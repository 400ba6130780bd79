"""`make screenshots`: a picture of every page of the product, on its sample data, into docs/screenshots.

`make screenshots ARGS='explorer-hits health'` takes these pages alone.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import expect, sync_playwright

from tests.browser.chromium import chromium_path
from tests.browser.pages import MODEL_PAGES, OUTSIDE, PAGES, STEPS, Places, issue_key
from tests.fake_llm import FakeLLM, Fault

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "screenshots"
SIZES = {1440: 900, 390: 844}
#: The most that a picture shows of a long page.
_TALLEST = {1440: 2000, 390: 2400}
#: Colours of a picture: the folder stays small.
_COMMONEST, _COLOURS = 24, 48
#: Shows folders and the machine as another installation has them.
_MASK = """(names) => {
  const masked = (text) => names.reduce((known, [own, shown]) => known.replaceAll(own, shown), text);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data;
    if (masked(text) !== text) walker.currentNode.data = masked(text);
  }
  for (const field of document.querySelectorAll("input[type=text]")) {
    if (masked(field.value) !== field.value) field.value = masked(field.value);
  }
}"""
_READY = re.compile(r"CoreCube is ready: (\S+)")
_PASSWORD = re.compile(r"^  (\S+) +(\S+)  Administrator$")
#: What the people of the company ask, so that the log and the home page have something to tell.
ASKED = {
    "admin": (
        "How did the ammonia leak at Tallow Quay happen?",
        "larder database failover",
        "Which wage increase does the budget for 2027 assume?",
        "GAN-0x2F",
    ),
    "wilhelmina": ("How much may a hotel night cost?", "What did the land at Ostermere cost?", "credit control"),
    "yusuf": ("larder database failover", "What does GAN-0x66 mean?", "double booked slot"),
    "jun": ("What is the maximum of salary band K5?", "What does lunch in the canteen cost?", "visitor rules"),
}
_TELLING = {"overview", "log", "audit", "health"}
#: How this machine's names are shown.
NAMES = [[str(ROOT), "/srv/corecube"], [f"{socket.gethostname()}:", "server:"]]
#: Names of the pages to take; empty for all.
WANTED = frozenset(sys.argv[1:])
QUERY = "how do we fail over the larder database?"


@contextmanager
def running(var):
    """Run the product in a folder of its own; give its address, and the administrator's name and password."""
    ours = Path(os.environ.get("CORECUBE_VAR_DIR", ROOT / "var")).resolve()
    (var / "models").symlink_to(ours / "models")
    environment = {**os.environ, "CORECUBE_VAR_DIR": str(var)}
    command = [sys.executable, "manage.py", "start"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as program:
        try:
            yield _introduced(program)
        finally:
            program.terminate()
            program.stdout.read()


def _introduced(program):
    account = None
    for line in program.stdout:
        sys.stdout.write(line)
        account = _PASSWORD.match(line) or account
        if ready := _READY.search(line):
            return ready[1], *account.groups()
    raise SystemExit("CoreCube did not start.")


def sign_in(page, name, password):
    """Sign in by the form."""
    page.goto("/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()


def ask(page, question, person=""):
    """Ask in the Explorer."""
    page.goto(f"/explorer/?as={person}")
    page.locator("#query").fill(question)
    page.locator("#query").press("Enter")
    page.locator("[data-panel=tab], #results [role=alert]").first.wait_for(state="attached")


def live_a_little(page):
    """Ask what the company asks, judge a ranking and keep its question, try a draft, begin an index, make a key."""
    for person, questions in ASKED.items():
        for question in questions:
            ask(page, question, "" if person == "admin" else person)
    ask(page, QUERY)
    for rank, grade in enumerate((3, 2, 0, 1, 0), start=1):
        page.locator(f"#judge-{rank}-{grade}").click()
        expect(page.locator(f"#judge-{rank}-{grade}")).to_have_attribute("aria-pressed", "true")
    page.get_by_text("Save as case").click()
    page.locator(".case-form").get_by_role("button", name="Save").click()
    page.locator(".notice.is-good").wait_for()
    page.goto("/presets/corecube/")
    field = page.locator("[name='blend.freshness']")
    field.evaluate("it => it.closest('details').setAttribute('open', '')")
    field.fill("0.2")
    page.locator(".tunable-save button").click()
    page.locator(".changes").wait_for()
    page.goto("/models/")
    page.get_by_label("Model", exact=True).select_option("bge-small-en-v1.5-fp32")
    page.get_by_role("button", name="Build index").click()
    page.locator("[data-index]").nth(1).wait_for()
    issue_key(page)


def places(page):
    """Return what there is to look at, as the console's own pages lead to it."""

    def first(address, selector, part=-2):
        page.goto(address)
        return page.locator(selector).first.get_attribute("href").partition("#")[0].split("/")[part]

    query = QUERY.replace(" ", "+")
    return Places(
        query=query,
        nonsense="xylophone",
        person="jun",
        without="without=handbook&without=meetings&without=website",
        title="failover",
        document=first(f"/explorer/?q={query}", ".hit-open"),
        hidden=first("/explorer/?q=salary+bands", ".hit-open"),
        record=first("/log/?q=hotel", ".log-query a"),
        question_set=first("/judgments/", "main a[href^='/judgments/']"),
        connection="runbooks",
        upload="handbook",  # No sample source takes uploads: the page of another kind.
        job=first("/jobs/", ".job-link"),
        compartment=first("/access/compartments/", "main a[href^='/access/compartments/']:not([href*=new])"),
        user=first("/access/users/", "main a[href^='/access/users/']:not([href*=new])"),
        group=first("/access/groups/", "main a[href^='/access/groups/']:not([href*=new])"),
        index=first("/models/", "main a[href$='/drop/']", -3),
        key=first("/access/keys/", "main a[href*=revoke]", -3),
        conversation=chatted(page),
        link=shared(page),
        run=measured(page),
        other_run=measured(page),
        sweep=swept(page),
        prompt=offered_prompt(page),
        authorization=registered_application(page),
        language_model=described_model(page),
        section_set=edited_sections(page),
    )


def shared(page):
    """Share the conversation of the open page, and return its link's id."""
    page.locator(".share-open").click()
    page.get_by_role("button", name="Create link").click()
    return page.locator("#share-link").input_value().rstrip("/").split("/")[-1]


def measured(page):
    """Measure the first question set, and return the run."""
    page.goto("/judgments/")
    page.locator("main a[href^='/judgments/']").first.click()
    page.get_by_label("Answers", exact=True).check()
    page.get_by_role("button", name="Measure").click()
    page.locator("#run:not([hx-get])").wait_for()
    return page.url.split("/")[-2]


def swept(page):
    """Add questions to the first set, try weights of the blend on it, and return the sweep."""
    page.goto("/judgments/")
    page.locator("main a[href^='/judgments/']").first.click()
    for question in ("What does GAN-0x2F mean?", "What does lunch in the canteen cost?", "Who may visit the archive?"):
        page.locator("#case-query").fill(question)
        page.get_by_role("button", name="Add case").click()
        page.wait_for_load_state()
    page.goto("/sweeps/")
    page.get_by_role("button", name="New sweep …").click()
    for number, (name, values) in enumerate((("blend.dense", "0.2, 0.4, 0.6"), ("blend.fulltext", "0.1, 0.3"))):
        page.locator("select[name=name]").nth(number).select_option(name)
        page.locator("[name=tried]").nth(number).fill(values)
    page.get_by_role("button", name="Start sweep").click()
    page.locator("#sweep:not([hx-get])").wait_for()
    return page.url.split("/")[-2]


def registered_application(page):
    """Register an application, and return the query with which it asks to be connected."""
    redirect = "http://127.0.0.1:33418/"
    described = {"client_name": "Visual Studio Code", "redirect_uris": [redirect]}
    client = page.request.post("/oauth/register", data=described).json()["client_id"]
    proof = {"code_challenge": "x" * 43, "code_challenge_method": "S256"}
    return urlencode({"response_type": "code", "client_id": client, "redirect_uri": redirect, **proof})


def offered_prompt(page):
    """Offer a starting prompt, and return its id."""
    page.goto("/prompts/")
    page.locator("main [name=title]").fill("Leave")
    page.locator("main [name=text]").fill("How many days of paid annual leave do I have?")
    page.get_by_role("button", name="Add prompt").click()
    page.goto("/prompts/")
    return page.locator("main a[href^='/prompts/']").first.get_attribute("href").split("/")[-2]


def edited_sections(page):
    """Change a section of a shipped set, so that it can be reset, and copy the set; return the copy's name."""
    page.goto("/section-sets/report/sections/history/")
    page.locator("[name=keep]").fill("9")
    page.locator(".tunable-save button").click()
    page.wait_for_url("**/section-sets/report/")
    page.locator("#copy_new_name").fill("audit_report")
    page.get_by_role("button", name="Copy", exact=True).click()
    page.wait_for_url("**/section-sets/audit_report/")
    return "audit_report"


def described_model(page):
    """Describe a language model that nobody asks, and return its slug."""
    page.goto("/language-models/new/")
    for field, text in (("name", "Local model"), ("base_url", "http://localhost:11434/v1"), ("model", "llama")):
        page.locator(f"main [name={field}]").fill(text)
    page.locator("[name=is_enabled]").uncheck()
    page.locator("#save").click()
    page.wait_for_url("**/language-models/**")
    return "local-model"


def rephrased_search(page, language_model):
    """Let the described model take its time over a search in other words, and return the search."""
    page.goto("/language-models/local-model/")
    page.locator("[name=base_url]").fill(f"http://127.0.0.1:{language_model.port}/v1")
    for box in ("is_enabled", "is_default"):
        page.locator(f"main [name={box}]").check()
    page.locator("#save").click()
    page.wait_for_load_state()
    page.goto(f"/explorer/?q={QUERY.replace(' ', '+')}&preset=helix")
    page.get_by_role("button", name="Search with rephrased queries").click()
    page.wait_for_url("**/queued/**")
    page.get_by_text("Searching: a language model").wait_for()
    return page.url.split("/")[-2]


def chatted(page):
    """Ask on the chat page and return the conversation."""
    page.goto("/chat/")
    page.get_by_label("Question", exact=True).fill("How do I fail over the larder database?")
    page.keyboard.press("Enter")
    page.locator("[data-exchange][data-state=done]").wait_for()
    return page.url.split("/")[-2]


def take(page, name, show):
    """Take the pictures of the page that `show` opens, where it is wanted."""
    if WANTED and name not in WANTED:
        return
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        show()
        _wait_until_drawn(page)
        # As tall a window as the page, so that what keeps to its edges is at the page's.
        tall = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": width, "height": min(max(tall, height), _TALLEST[width])})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            _wait_until_drawn(page)
            _save(page.screenshot(), FOLDER / f"{name}-{width}-{scheme}.png")


def _wait_until_drawn(page):
    """Wait for what the page loads by itself, and for its charts, which wait to be seen."""
    expect(page.locator("[hx-trigger=load], .htmx-request")).to_have_count(0)
    for chart in page.locator("[data-chart]:visible").all():
        chart.scroll_into_view_if_needed()
        expect(chart).to_have_class(re.compile("is-drawn"))
    page.evaluate("window.scrollTo(0, 0)")
    page.evaluate(_MASK, NAMES)
    page.wait_for_timeout(200)


def _save(picture, path):
    """Save a picture in few colours: the commonest as they are, and those that cover the rest."""
    image = Image.open(BytesIO(picture)).convert("RGB")
    counted = sorted(image.getcolors(image.width * image.height), reverse=True)
    common = [channel for _, colour in counted[:_COMMONEST] for channel in colour]
    covering = image.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE).getpalette()[: 3 * _COLOURS]
    palette = Image.new("P", (1, 1))
    palette.putpalette([*common, *covering])
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


def main():
    """Start the product, live a little, and take every page's pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.png"):
        if not WANTED or old.name.rsplit("-", 2)[0] in WANTED:
            old.unlink()
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder)) as (address, name, password),
        sync_playwright() as playwright,
    ):
        NAMES.insert(0, [folder, "/srv/corecube/var"])
        chromium = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        page = chromium.new_context(base_url=address).new_page()
        for outside, path in OUTSIDE.items():
            take(page, outside, partial(page.goto, path))
        sign_in(page, name, password)
        live_a_little(page)
        # The log and the home page first, before the pictures' own visits stand in them.
        found = places(page)
        pages = sorted(found.addresses(PAGES).items(), key=lambda it: it[0] not in _TELLING)
        for inside, path in pages:
            take(page, inside, partial(page.goto, path))
        for unaddressed, step in STEPS.items():
            take(page, unaddressed, partial(step, page, found.user))
        with FakeLLM(fault=Fault.SLOW_HEADERS) as language_model:
            searched = rephrased_search(page, language_model)
            for waiting, path in MODEL_PAGES.items():
                take(page, waiting, partial(page.goto, path.format(queued=searched)))
        chromium.close()
    size = sum(path.stat().st_size for path in FOLDER.glob("*.png"))
    sys.stdout.write(f"{len(list(FOLDER.glob('*.png')))} pictures, {size / 2**20:.1f} MiB, in {FOLDER}\n")


if __name__ == "__main__":
    main()
