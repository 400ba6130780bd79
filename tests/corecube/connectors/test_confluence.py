"""Against a server that answers as Atlassian's published REST contract says, in both editions."""

import base64
import json
import logging
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from corecube.connectors.confluence.connector import ConfluenceConnector
from corecube.connectors.setup import SourceSetup
from corecube.connectors.types import ItemError, ItemGone, ItemProblem, SourceItem
from corecube.errors import ConfigError, UnavailableError

TOKEN = "s3cr3t-token"
EDITIONS = ["cloud", "data_center"]


@dataclass
class Confluence:
    """A site whose listings have two entries a page, whatever limit is asked for."""

    cloud: bool
    spaces: dict = field(default_factory=lambda: {"ENG": "Engineering", "FIN": "Finance"})
    contents: dict = field(default_factory=dict)
    bodies: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    restricted_elsewhere: set = field(default_factory=set)
    #: How far the user's time zone is ahead of UTC.
    zone: timedelta = timedelta(0)

    @property
    def context(self):
        return "/wiki" if self.cloud else "/confluence"

    def add(
        self, number, title, *, body="<p>text</p>", space="ENG", kind="page", above=(), only=(), labels=(), **facts
    ):
        content = {
            "id": str(number),
            "type": kind,
            "status": "current",
            "title": title,
            "space": {"key": space},
            "version": {"number": 1, "when": "2026-03-01T10:00:00.000Z", **facts.pop("version", {})},
            "ancestors": [{"id": str(it), "type": "page", "title": name} for it, name in above],
            "metadata": {"labels": {"results": [{"prefix": "global", "name": it} for it in labels], "size": 0}},
            "restrictions": {"read": {"operation": "read", "restrictions": holders(only)}},
            "_links": {"webui": f"/spaces/{space}/pages/{number}", "self": "https://x/rest/api/content/1"},
            **facts,
        }
        self.contents[str(number)] = content
        self.bodies[str(number)] = body
        return content

    def attach(self, number, name, content, page, **facts):
        path = f"/download/attachments/{page}/{name}?version=1"
        entry = self.add(
            number,
            name,
            kind="attachment",
            container={"id": str(page), "type": "page", "title": ""},
            extensions={"mediaType": "application/pdf", "fileSize": len(content), "comment": ""},
            **facts,
        )
        entry["_links"]["download"] = path
        del entry["restrictions"]
        self.files[path.partition("?")[0]] = content
        return entry

    def __call__(self, path, headers):
        expected = (
            f"Bearer {TOKEN}" if not self.cloud else "Basic " + base64.b64encode(f"me@x:{TOKEN}".encode()).decode()
        )
        if headers.get("Authorization") != expected:
            return 401, {}, b"{}"
        parts = urlsplit(path)
        if not parts.path.startswith(f"{self.context}/"):
            return 404, {}, b"{}"
        inner = parts.path.removeprefix(self.context)
        if inner in self.files:
            return 200, {"Content-Type": "application/octet-stream"}, self.files[inner]
        status, found = self.api(inner, {name: values[0] for name, values in parse_qs(parts.query).items()})
        return status, {"Content-Type": "application/json"}, json.dumps(found).encode()

    def api(self, path, asked):
        if path == "/rest/api/user/current":
            return 200, {"type": "known", "username": "me", "displayName": "Me"}
        if path == "/rest/api/content/search":
            return self.search(asked)
        if found := re.fullmatch(r"/rest/api/content/(\w+)/restriction/byOperation/read", path):
            only = ["amy"] if found[1] in self.restricted_elsewhere else []
            return 200, {"operation": "read", "restrictions": holders(only)}
        return self.cloud_only(path, asked) if self.cloud else self.data_center_only(path, asked)

    def cloud_only(self, path, asked):
        if path == "/api/v2/spaces":
            return 200, {"results": [{"id": "1", "key": it} for it in asked["keys"].split(",") if it in self.spaces]}
        found = re.fullmatch(r"/api/v2/(page|blogpost)s/(\d+)", path)
        if found and self.contents.get(found[2], {}).get("type") == found[1] and asked["body-format"] == "export_view":
            return 200, self.with_body(found[2])
        return (410, {"message": "This deprecated endpoint has been removed."}) if "/rest/" in path else (404, {})

    def data_center_only(self, path, asked):
        if (found := re.fullmatch(r"/rest/api/space/(\w+)", path)) and found[1] in self.spaces:
            return 200, {"key": found[1], "name": self.spaces[found[1]]}
        if (found := re.fullmatch(r"/rest/api/content/(\d+)", path)) and found[1] in self.contents:
            return 200, self.with_body(found[1]) if asked.get("expand") == "body.export_view" else {}
        return 404, {"statusCode": 404}

    def with_body(self, number):
        body = {"export_view": {"representation": "export_view", "value": self.bodies[number]}}
        return {**self.contents[number], "body": body}

    def search(self, asked):
        found = [it for it in self.contents.values() if fits(it, asked["cql"], self.zone)]
        position = "cursor" if self.cloud else "start"
        start, size = int(asked.get(position, 0)), min(2, int(asked["limit"]))
        links = {"base": f"https://site.example{self.context}", "context": self.context, "self": "x"}
        if start + size < len(found):
            query = urlencode({**asked, position: start + size})
            links["next"] = f"/rest/api/content/search?{query}"
        shown = [expanded(it, asked["expand"]) for it in found[start : start + size]]
        return 200, {"results": shown, "limit": size, "size": len(shown), "_links": links}


def holders(names):
    return {
        "user": {"results": [{"type": "known", "username": it} for it in names], "size": len(names)},
        "group": {"results": [], "size": 0},
    }


def expanded(content, asked):
    """Return a content without what was not asked to be expanded."""
    optional = {"version", "ancestors", "metadata", "restrictions", "container"}
    wanted = {it.partition(".")[0] for it in asked.split(",")}
    return {name: value for name, value in content.items() if name not in optional - wanted}


def fits(content, cql, zone):
    rest = cql
    for pattern, test in (
        (r'space = "([^"]+)"', lambda found: content["space"]["key"] == found[1]),
        (r'type in \("page", "blogpost"\)', lambda _: content["type"] in {"page", "blogpost"}),
        (r'type = "(\w+)"', lambda found: content["type"] == found[1]),
        (r"id in \(([\d, ]+)\)", lambda found: content["id"] in found[1].split(", ")),
        (r'lastmodified >= "(\d{4}-\d\d-\d\d \d\d:\d\d)"', lambda found: local(content, zone) >= found[1]),
    ):
        if found := re.search(pattern, rest):
            rest = rest.replace(found[0], "")
            if not test(found):
                return False
    assert rest.replace(" and ", "").strip() == "", f"CQL that the server does not know: {cql}"
    return True


def local(content, zone):
    """Return the minute of a content's last change as CQL compares it."""
    return f"{datetime.fromisoformat(content['version']['when']) + zone:%Y-%m-%d %H:%M}"


@pytest.fixture(params=EDITIONS)
def wiki(request, site):
    it = Confluence(cloud=request.param == "cloud")
    site.pages = AnyPath(it)
    it.url = f"{site.url}{it.context}"
    it.site = site
    return it


class AnyPath(dict):
    """Pages that one function answers, whatever the path."""

    def __init__(self, answer):
        self.answer = answer

    def get(self, *_):
        return self.answer


@pytest.fixture
def connector(wiki, tmp_path):
    made = []

    def make(*, token=TOKEN, **config):
        config = {"url": wiki.url, "spaces": ["ENG"], "edition": "cloud" if wiki.cloud else "data_center", **config}
        config = {"user": "me@x", **config} if wiki.cloud else config
        setup = SourceSetup(config=config, secrets={"token": token}, state=tmp_path, uploads=tmp_path, max_bytes=10_000)
        made.append(ConfluenceConnector.from_setup(setup))
        # How long a client waits before it asks again is tested with the client.
        made[-1].api.client.sleep = lambda _: None
        return made[-1]

    yield make
    for it in made:
        it.api.client.close()


def ids(found):
    return [it.external_id for it in found if isinstance(it, SourceItem)]


def problems(found):
    return {it.external_id: it.reason for it in found if isinstance(it, ItemProblem)}


def test_pages_are_listed_over_all_pages_of_the_listing_and_read(wiki, connector):
    for number in range(1, 6):
        wiki.add(number, f"Page {number}", body=f"<p>text {number}</p>")
    wiki.add(6, "Elsewhere", space="FIN")
    source = connector()
    items = list(source.items())
    assert ids(items) == ["1", "2", "3", "4", "5"]
    text = source.read(items[4]).decode()
    assert "<title>Page 5</title>" in text
    assert "<p>text 5</p>" in text


def test_a_page_carries_where_it_stands(wiki, connector):
    wiki.add(1, "Home")
    wiki.add(2, "Runbooks", above=[(1, "Home")])
    wiki.add(3, "Roll <back>", above=[(1, "Home"), (2, "Runbooks")], labels=["ops", "deploy"])
    source = connector()
    item = list(source.items())[2]
    assert item.facts == {"space": "ENG", "ancestors": "Home > Runbooks", "labels": "deploy, ops"}
    assert (item.name, item.uri) == ("Roll <back>.html", f"{wiki.url}/spaces/ENG/pages/3")
    assert item.modified_at == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert "<title>Roll &lt;back&gt;</title>" in source.read(item).decode()


@pytest.mark.parametrize("change", [{"version": {"number": 2}}, {"labels": ["new"]}, {"above": [(1, "Renamed")]}])
def test_the_version_follows_text_labels_and_place(wiki, connector, change):
    wiki.add(1, "Home")
    wiki.add(2, "Page", above=[(1, "Home")])
    before = {it.external_id: it.version for it in connector().items()}
    wiki.add(2, "Page", **{"above": [(1, "Home")], **change})
    after = {it.external_id: it.version for it in connector().items()}
    assert before["1"] == after["1"]
    assert before["2"] != after["2"]


def test_blog_posts_and_attachments_come_along_and_can_be_left_out(wiki, connector):
    wiki.add(1, "Page")
    wiki.add(2, "News", body="<p>news</p>", kind="blogpost")
    wiki.attach("att3", "plan.pdf", b"%PDF", page=1)
    source = connector()
    items = list(source.items())
    assert ids(items) == ["1", "2", "att3"]
    assert "news" in source.read(items[1]).decode()
    file = items[2]
    assert (source.read(file), file.name, file.media_type) == (b"%PDF", "plan.pdf", "application/pdf")
    assert file.facts["ancestors"] == "Page"
    assert ids(connector(blog_posts=False, attachments=False).items()) == ["1"]


def test_restricted_pages_what_lies_below_and_their_attachments_are_left_out_and_counted(wiki, connector):
    wiki.add(1, "Open")
    wiki.add(2, "Closed", only=["amy"])
    wiki.add(3, "Below", above=[(2, "Closed")])
    wiki.attach("att4", "a.pdf", b"x", page=3)
    found = list(connector().items())
    assert ids(found) == ["1"]
    assert problems(found) == {"restricted/ENG": "restricted"}
    assert "3 restricted pages" in found[-1].message
    assert ids(connector(include_restricted=True).items()) == ["1", "2", "3", "att4"]


def test_an_ancestor_that_is_not_listed_is_asked_for(wiki, connector):
    """Folders are ancestors that a search for pages does not find."""
    wiki.restricted_elsewhere.add("90")
    wiki.add(1, "In a closed folder", above=[(90, "Closed")])
    wiki.add(2, "In an open folder", above=[(91, "Open")])
    assert ids(connector().items()) == ["2"]


def test_a_page_whose_restrictions_the_site_does_not_tell_is_left_out(wiki, connector):
    wiki.add(1, "Page")["restrictions"] = {}
    assert ids(connector().items()) == []


def test_patterns_see_space_ancestors_and_title(wiki, connector):
    wiki.add(1, "Home")
    wiki.add(2, "Old/new", above=[(1, "Home")])
    wiki.attach("att3", "a.pdf", b"x", page=2)
    assert ids(connector(include=["/ENG/Home/**"]).items()) == ["2", "att3"]
    assert ids(connector(include=["/ENG/Home/Old-new"]).items()) == ["2", "att3"]
    assert ids(connector(exclude=["*.pdf"]).items()) == ["1", "2"]


def test_what_changed_since_a_moment_is_found_with_the_restrictions_of_what_did_not(wiki, connector):
    late = {"when": "2026-05-02T10:00:00.000Z", "number": 2}
    wiki.add(1, "Closed", only=["amy"])
    wiki.add(2, "Old")
    wiki.add(3, "New below closed", above=[(1, "Closed")], version=late)
    wiki.add(4, "New", version=late)
    wiki.attach("att5", "of-old.pdf", b"x", page=2, version=late)
    wiki.attach("att6", "of-closed.pdf", b"x", page=1, version=late)
    wiki.restricted_elsewhere.add("1")
    found = list(connector().changed_since(datetime(2026, 5, 2, 9, tzinfo=UTC)))
    assert ids(found) == ["4", "att5"]
    assert [it.external_id for it in found if isinstance(it, ItemGone)] == ["3", "att6"]
    # How many are left out of the whole space is not told by its changes.
    assert problems(found) == {}


def test_a_changed_page_that_no_pattern_wants_any_more_is_gone(wiki, connector):
    wiki.add(1, "Draft of the plan", version={"when": "2026-05-02T10:00:00.000Z"})
    found = connector(exclude=["/ENG/Draft*"]).changed_since(datetime(2026, 5, 2, 9, tzinfo=UTC))
    assert list(found) == [ItemGone("1")]


@pytest.mark.parametrize("hours", [-12, 0, 14])
def test_a_change_is_found_in_every_time_zone_to_the_minute_and_with_a_clock_that_is_late(wiki, connector, hours):
    wiki.zone = timedelta(hours=hours)
    wiki.add(1, "Old", version={"when": "2026-04-29T10:00:00.000Z"})
    wiki.add(2, "By a late clock", version={"when": "2026-05-02T08:50:00.000Z"})
    wiki.add(3, "Just then", version={"when": "2026-05-02T09:00:05.000Z"})
    assert ids(connector().changed_since(datetime(2026, 5, 2, 9, 0, 4, tzinfo=UTC))) == ["2", "3"]


def test_a_large_attachment_is_a_problem_and_is_not_fetched(wiki, connector):
    wiki.add(1, "Page")
    wiki.attach("att2", "large.pdf", b"x" * 10_001, page=1)
    assert problems(connector().items()) == {"att2": "too_large"}
    assert not any("download" in path for path in wiki.site.asked())


def test_a_large_page_is_refused_when_it_is_read(wiki, connector):
    wiki.add(1, "Page", body="x" * 10_001)
    source = connector()
    (item,) = source.items()
    with pytest.raises(ItemError) as caught:
        source.read(item)
    assert caught.value.reason == "too_large"


def test_an_attachment_kept_on_another_host_is_fetched_without_the_token(wiki, connector, serve):
    media = serve()
    media.add("/blob", b"%PDF")
    wiki.add(1, "Page")
    wiki.attach("att2", "plan.pdf", b"", page=1)
    wiki.site.pages = AnyPath(
        lambda path, headers: (
            (302, {"Location": f"{media.url}/blob"}, b"") if "download" in path else wiki(path, headers)
        )
    )
    source = connector()
    assert source.read(list(source.items())[1]) == b"%PDF"
    assert "Authorization" not in media.requests[0][1]


def test_a_download_address_that_leads_elsewhere_stays_on_the_site(wiki, connector, serve):
    other = serve()
    wiki.add(1, "Page")
    wiki.attach("att2", "plan.pdf", b"", page=1)["_links"]["download"] = f"{other.url}/steal"
    source = connector()
    with pytest.raises(ItemError):
        source.read(list(source.items())[1])
    assert other.requests == []


def test_every_capability_passes_where_all_is_well(wiki, connector):
    wiki.add(1, "Page")
    assert [(it.name, it.ok) for it in connector().preflight()] == [
        ("reach", True), ("authenticate", True), ("list", True), ("read", True),
    ]  # fmt: skip


def test_a_wrong_token_fails_to_authenticate_and_is_not_repeated(wiki, connector):
    source = connector(token="wr0ng")
    found = list(source.preflight())
    assert [(it.name, it.ok) for it in found] == [("reach", True), ("authenticate", False)]
    with pytest.raises(ConfigError, match="401") as caught:
        source.check()
    assert "wr0ng" not in f"{found}{caught.value}{source!r}"


def test_a_space_that_is_not_visible_fails_the_sync_instead_of_emptying_it(wiki, connector):
    source = connector(spaces=["ENG", "SECRET"])
    assert [(it.name, it.ok) for it in source.preflight()][-1] == ("list", False)
    with pytest.raises(ConfigError, match="SECRET"):
        list(source.items())


def test_a_listing_that_breaks_off_fails_the_sync(wiki, connector):
    for number in range(5):
        wiki.add(number, f"Page {number}")
    wiki.site.pages = AnyPath(
        lambda path, headers: (500, {}, b"{}") if "cursor=" in path or "start=" in path else wiki(path, headers)
    )
    with pytest.raises(UnavailableError, match="500"):
        list(connector().items())


def test_what_is_no_confluence_is_said_to_be_none(site, tmp_path):
    site.pages = AnyPath(lambda *_: (200, {}, b"<html>welcome</html>"))
    setup = SourceSetup(config={"url": site.url, "spaces": ["ENG"]}, state=tmp_path, uploads=tmp_path, max_bytes=1000)
    source = ConfluenceConnector.from_setup(setup)
    (only,) = source.preflight()
    source.api.client.close()
    assert (only.name, only.ok, only.message) == ("reach", False, "The site's response is not from Confluence.")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"spaces": []}, "spaces"),
        ({"spaces": ['ENG" or type = "page']}, "space key"),
        ({"url": "file:///etc"}, "URL"),
        ({"url": "https://me:pw@site"}, "user or a password"),
        ({"edition": "server"}, "edition"),
    ],
)
def test_a_wrong_config_is_named(connector, config, said):
    with pytest.raises(ConfigError, match=said):
        connector(**config)


def test_the_token_stays_out_of_the_most_talkative_log(wiki, connector, caplog):
    caplog.set_level(logging.DEBUG)
    wiki.add(1, "Page")
    source = connector()
    assert len([source.read(it) for it in source.items()]) == 1
    encoded = base64.b64encode(f"me@x:{TOKEN}".encode()).decode()
    assert not any(secret in caplog.text for secret in (TOKEN, encoded))


def test_a_page_that_the_site_cannot_give_now_is_a_passing_trouble(wiki, connector):
    wiki.add(1, "Page")
    source = connector()
    (item,) = source.items()
    wiki.site.pages = AnyPath(lambda *_: (503, {"Retry-After": "0"}, b"{}"))
    with pytest.raises(ItemError) as caught:
        source.read(item)
    assert caught.value.reason == "unavailable"
