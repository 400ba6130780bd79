"""Against real sites started by the tests."""

import gzip
import time
from datetime import UTC, datetime

import pytest

from corecube.connectors.setup import SourceSetup
from corecube.connectors.types import ItemError, ItemProblem, SourceItem
from corecube.connectors.web.connector import WebConnector
from corecube.errors import ConfigError, UnavailableError

HTML = "text/html; charset=utf-8"
WHEN = "Fri, 02 Jan 2026 03:04:05 GMT"


def page(*links, head="", text="text"):
    anchors = "".join(f'<a href="{it}">link</a>' for it in links)
    return f"<html><head>{head}</head><body><p>{text}</p>{anchors}</body></html>"


@pytest.fixture
def crawler(site, tmp_path):
    """Return a function that makes a connector for the site; it does not really wait, `waits` are its waits."""
    made = []

    def make(*start, private=("127.0.0.1/32",), max_bytes=10_000, **config):
        config = {"start": [f"{site.url}/", *start], "delay_seconds": 0, "private_networks": private, **config}
        setup = SourceSetup(config=config, state=tmp_path / "state", uploads=tmp_path, max_bytes=max_bytes)
        it = WebConnector.from_setup(setup)
        it.client.waits = []
        it.client.sleep = it.client.waits.append
        made.append(it)
        return it

    yield make
    for it in made:
        it.client.close()


@pytest.fixture
def add(site):
    """Return a function that adds an HTML page to the site."""

    def put(path, *links, head="", text="text", **headers):
        site.add(path, page(*links, head=head, text=text), Content_Type=HTML, **headers)

    return put


def paths(found, site):
    return [it.external_id.removeprefix(site.url) for it in found if isinstance(it, SourceItem)]


def problems(found, site):
    return {it.external_id.removeprefix(site.url): it.reason for it in found if isinstance(it, ItemProblem)}


def test_pages_are_found_along_links_the_nearest_first_and_read(site, add, crawler):
    add("/", "/a", "b/", "https://elsewhere.example/", "mailto:x@y", "javascript:alert(1)", "/logo.png")
    add("/a", "/c", "/#top")
    add("/b/", "../c")
    add("/c", "/", text="deepest")
    source = crawler()
    items = list(source.items())
    assert paths(items, site) == ["/", "/a", "/b/", "/c"]
    assert b"deepest" in source.read(items[3])
    assert "/logo.png" not in site.asked()


def test_an_item_says_what_it_is_and_when_it_changed(site, crawler):
    site.add("/", page("/report", "/guide.php", "/plan.pdf"), Content_Type=HTML, Last_Modified=WHEN)
    site.add("/report", b"%PDF-1.7", Content_Type="application/pdf")
    site.add("/guide.php", page(), Content_Type="text/html; charset=latin-1")
    site.add("/plan.pdf", b"%PDF-1.7", Content_Type="application/pdf")
    items = list(crawler().items())
    assert items[0].modified_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert [it.name for it in items[1:]] == ["report.pdf", "guide.php.html", "plan.pdf"]
    assert items[2].media_type == "text/html; charset=latin-1"
    assert items[2].uri == f"{site.url}/guide.php"


def test_the_second_crawl_is_answered_from_what_is_known_and_follows_the_same_links(site, crawler):
    def cached(content, tag):
        def answer(_, headers):
            if headers.get("If-None-Match") == tag:
                return 304, {"ETag": tag}, b""
            return 200, {"ETag": tag, "Content-Type": HTML}, content.encode()

        return answer

    site.pages["/"] = cached(page("/a"), '"1"')
    site.pages["/a"] = cached(page(), '"2"')
    first = list(crawler().items())
    site.pages["/a"] = cached(page(text="new"), '"3"')
    source = crawler()
    second = list(source.items())
    assert paths(second, site) == ["/", "/a"]
    assert first[0].version == second[0].version
    assert first[1].version != second[1].version
    assert b"new" in source.read(second[1])


def test_last_modified_is_sent_back_too(site, crawler):
    site.add("/", page(), Content_Type=HTML, Last_Modified=WHEN)
    list(crawler().items())
    site.requests.clear()
    list(crawler().items())
    assert dict(site.requests)["/"]["If-Modified-Since"] == WHEN


def test_a_page_is_read_on_a_machine_that_did_not_crawl(site, add, crawler, tmp_path):
    add("/", text="hello")
    (item,) = crawler().items()
    list(crawler().items())
    other = SourceSetup(
        config={"start": [site.url], "private_networks": ["127.0.0.1/32"]},
        state=tmp_path / "b",
        uploads=tmp_path,
        max_bytes=10_000,
    )
    source = WebConnector.from_setup(other)
    assert b"hello" in source.read(item)
    source.client.close()


def test_a_page_that_went_is_gone_and_one_that_fails_is_a_problem(site, add, crawler):
    add("/", "/gone", "/away", "/broken", "/closed")
    site.add("/gone", status=404)
    site.add("/away", status=410)
    site.add("/broken", status=500)
    site.add("/closed", status=403)
    found = list(crawler().items())
    assert (paths(found, site), problems(found, site)) == (["/"], {"/broken": "unavailable", "/closed": "refused"})


def test_what_a_failing_page_links_to_is_asked_for_itself(site, add, crawler):
    add("/", "/hub")
    add("/hub", "/leaf", "/old")
    add("/leaf")
    add("/old")
    assert paths(crawler().items(), site) == ["/", "/hub", "/leaf", "/old"]
    site.add("/hub", status=500)
    del site.pages["/old"]
    found = list(crawler().items())
    assert (paths(found, site), problems(found, site)) == (["/", "/leaf"], {"/hub": "unavailable"})
    add("/hub", "/other")
    assert paths(crawler().items(), site) == ["/", "/hub"]


def test_a_site_that_went_down_in_the_middle_fails_the_sync(site, add, crawler):
    add("/", *(f"/{number}" for number in range(40)))
    for number in range(40):
        site.add(f"/{number}", status=500)
    with pytest.raises(UnavailableError, match="no longer answers"):
        list(crawler().items())
    assert len([it for it in site.asked() if it != "/robots.txt"]) == 16


def test_many_large_pages_are_no_sign_that_the_site_is_down(site, add, crawler):
    add("/", *(f"/{number}" for number in range(20)), "/last")
    for number in range(20):
        site.add(f"/{number}", b"x" * 10_001, Content_Type=HTML)
    add("/last")
    found = list(crawler().items())
    assert paths(found, site) == ["/", "/last"]
    assert set(problems(found, site).values()) == {"too_large"}


@pytest.mark.parametrize(("status", "error"), [(503, UnavailableError), (404, ConfigError)])
def test_a_site_whose_start_page_is_not_there_fails_the_sync(site, crawler, status, error):
    site.add("/", status=status)
    with pytest.raises(error):
        list(crawler().items())


def test_robots_txt_is_obeyed(site, add, crawler):
    site.add(
        "/robots.txt", "User-agent: *\nDisallow: /\n\nUser-agent: CoreCube\nDisallow: /private/\nAllow: /private/a$"
    )
    add("/", "/private/a", "/private/b", "/open")
    for path in ("/private/a", "/private/b", "/open"):
        add(path)
    assert paths(crawler().items(), site) == ["/", "/private/a", "/open"]
    assert "/private/b" not in site.asked()


def test_the_delay_is_the_longer_of_ours_and_the_sites(site, add, crawler):
    site.add("/robots.txt", "User-agent: *\nCrawl-delay: 3")
    add("/", "/a")
    add("/a")
    source = crawler(delay_seconds=1)
    list(source.items())
    assert source.client.waits == [0, 3.0]


def test_a_site_whose_robots_txt_cannot_be_read_is_not_visited(site, add, crawler):
    site.add("/robots.txt", status=500)
    add("/")
    with pytest.raises(UnavailableError, match=r"robots\.txt"):
        list(crawler().items())
    assert set(site.asked()) == {"/robots.txt"}


def test_one_of_several_hosts_without_readable_robots_txt_keeps_what_is_known_of_it(site, serve, add, crawler):
    other = serve()
    other.add("/robots.txt", status=500)
    other.add("/", page(), Content_Type=HTML)
    add("/")
    found = list(crawler(f"{other.url}/").items())
    (problem,) = [it for it in found if isinstance(it, ItemProblem)]
    assert (problem.external_id, problem.covers_subtree) == (other.url, True)
    assert other.asked() == ["/robots.txt"]


def test_a_site_without_robots_txt_is_visited(site, add, crawler):
    add("/")
    assert paths(crawler().items(), site) == ["/"]


@pytest.mark.parametrize(
    ("head", "headers", "expected"),
    [
        ('<meta name="robots" content="noindex">', {}, ["/", "/a"]),
        ('<meta name="ROBOTS" content="NoIndex, NoFollow">', {}, ["/"]),
        ('<meta name="corecube" content="none">', {}, ["/"]),
        ('<meta name="otherbot" content="none">', {}, ["/", "/mid", "/a"]),
        ("", {"X_Robots_Tag": "noindex"}, ["/", "/a"]),
        ("", {"X_Robots_Tag": "otherbot: noindex, nofollow"}, ["/", "/mid", "/a"]),
        ("", {"X_Robots_Tag": "otherbot: noarchive, corecube: nofollow"}, ["/", "/mid"]),
        ("", {"X_Robots_Tag": "unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow"}, ["/", "/mid"]),
    ],
)
def test_noindex_and_nofollow_are_obeyed(site, add, crawler, head, headers, expected):
    add("/", "/mid")
    add("/mid", "/a", head=head, **headers)
    add("/a")
    assert paths(crawler().items(), site) == expected


def test_links_marked_nofollow_are_not_followed(site, crawler):
    site.add("/", '<a rel="noopener nofollow" href="/a">x</a><a href="/b">y</a>', Content_Type=HTML)
    for path in ("/a", "/b"):
        site.add(path, page(), Content_Type=HTML)
    assert paths(crawler().items(), site) == ["/", "/b"]


def test_a_base_element_moves_the_links(site, add, crawler):
    add("/", "a", head='<base href="/docs/">')
    add("/docs/a")
    assert paths(crawler().items(), site) == ["/", "/docs/a"]


def test_pages_that_call_one_address_their_own_are_one_item(site, add, crawler):
    canonical = '<link rel="canonical" href="/a">'
    add("/", "/a?print=1", "/a?view=full")
    for path in ("/a?print=1", "/a?view=full", "/a"):
        add(path, head=canonical, text=path)
    items = list(crawler().items())
    assert paths(items, site) == ["/", "/a"]
    assert site.asked().count("/a") == 1


def test_a_canonical_address_that_is_not_there_or_elsewhere_does_not_lose_the_page(site, add, crawler):
    add("/", "/a", "/b")
    add("/a", head='<link rel="canonical" href="/missing">')
    add("/b", head='<link rel="canonical" href="https://elsewhere.example/b">')
    assert sorted(paths(crawler().items(), site)) == ["/", "/a", "/b"]


def test_addresses_that_mean_the_same_are_asked_for_once(site, add, crawler):
    add("/", "/a?x=1&y=2", "/a?y=2&x=1&utm_source=mail", "/./b/../a?x=1&y=2#part", "/a;jsessionid=7?x=1&y=2")
    site.add("/a", page(), Content_Type=HTML)
    assert paths(crawler().items(), site) == ["/", "/a?x=1&y=2"]


def test_a_redirect_leads_to_the_page_under_its_own_address(site, add, crawler):
    add("/", "/old", "/new")
    site.add("/old", status=301, Location="/new")
    add("/new")
    assert paths(crawler().items(), site) == ["/", "/new"]
    assert site.asked().count("/new") == 1


def test_a_redirect_loop_ends(site, add, crawler):
    add("/", "/a")
    site.add("/a", status=302, Location="/b")
    site.add("/b", status=302, Location="/a")
    assert paths(crawler().items(), site) == ["/"]
    assert len(site.asked()) == 4


def test_a_redirect_out_of_the_crawl_is_not_followed(site, serve, add, crawler):
    other = serve()
    other.add("/", page(), Content_Type=HTML)
    add("/", "/away")
    site.add("/away", status=302, Location=f"{other.url}/")
    assert paths(crawler().items(), site) == ["/"]
    assert other.requests == []


def test_a_start_page_that_leads_elsewhere_says_where(site, crawler):
    site.add("/", status=301, Location="https://www.elsewhere.example/")
    with pytest.raises(ConfigError, match=r"www\.elsewhere\.example"):
        list(crawler().items())


def test_a_redirect_to_a_private_address_is_refused_and_nobody_there_is_asked(site, serve, add, crawler):
    inner = serve(host="127.0.0.2")
    inner.add("/secret", page(), Content_Type=HTML)
    add("/", "/away")
    secret = f"http://127.0.0.2:{inner.port}"
    site.add("/away", status=302, Location=f"{secret}/secret")
    found = list(crawler(prefixes=[site.url, secret]).items())
    assert paths(found, site) == ["/"]
    assert inner.requests == []


def test_a_private_site_needs_leave(site, add, crawler):
    add("/")
    with pytest.raises(ConfigError, match="private network"):
        crawler(private=()).check()
    assert site.requests == []


def test_the_crawl_stays_below_its_prefixes(site, add, crawler):
    add("/", "/docs/", "/blog/", "/docs-old/")
    add("/docs/", "/docs/a", "/blog/b")
    for path in ("/docs/a", "/blog/", "/docs-old/"):
        add(path)
    source = crawler(prefixes=[f"{site.url}/docs/"], start=[f"{site.url}/docs/"])
    assert paths(source.items(), site) == ["/docs/", "/docs/a"]


def test_excluded_pages_are_not_visited_and_others_only_lead_on(site, add, crawler):
    add("/", "/list", "/tmp/x")
    add("/list", "/docs/a")
    add("/docs/a")
    add("/tmp/x", "/docs/b")
    add("/docs/b")
    assert paths(crawler(include=["/docs/"], exclude=["/tmp/"]).items(), site) == ["/docs/a"]


def test_the_limit_of_pages_is_kept_and_said(site, add, crawler):
    add("/", *(f"/{number}" for number in range(10)))
    for number in range(10):
        add(f"/{number}")
    found = list(crawler(max_pages=4).items())
    assert (paths(found, site), problems(found, site)) == (["/", "/0", "/1", "/2"], {"crawl": "page_limit"})


def test_the_limit_of_depth_is_kept(site, add, crawler):
    add("/", "/1")
    add("/1", "/2")
    add("/2")
    assert paths(crawler(max_depth=1).items(), site) == ["/", "/1"]
    assert paths(crawler(follow_links=False).items(), site) == ["/"]


def test_links_that_go_round_end(site, crawler):
    """Every page links to a folder below itself and to a long way round."""
    site.pages = Endless(lambda path: page(f"{path}deeper/", f"{path}a/b/"))
    found = list(crawler(max_pages=300, max_depth=100).items())
    # Of deeper, a and b none stands more than twice in a path: the ways of ordering up to two of each.
    assert 5 < len(found) < 100
    assert all(it.external_id.count("deeper") <= 2 for it in found)


def test_ever_new_queries_of_one_path_end(site, crawler):
    numbers = iter(range(10**6))
    site.pages = Endless(lambda _: page(*(f"/calendar?day={next(numbers)}" for _ in range(5))))
    found = list(crawler(max_pages=1000).items())
    assert len([it for it in found if isinstance(it, SourceItem)]) == 201


class Endless(dict):
    """A site that has every page."""

    def __init__(self, content):
        self.content = content

    def get(self, path, *_):
        if path == "/robots.txt":
            return 404, {}, b""
        return 200, {"Content-Type": HTML}, self.content(path).encode()


def test_sitemaps_and_their_indexes_are_read(site, add, crawler):
    site.add("/robots.txt", f"Sitemap: {site.url}/index.xml\nSitemap: https://elsewhere.example/sitemap.xml")
    namespace = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    site.add(
        "/index.xml", f"<sitemapindex {namespace}><sitemap><loc>{site.url}/1.xml.gz</loc></sitemap></sitemapindex>"
    )
    locations = f"<url><loc> {site.url}/a </loc></url><url><loc>https://elsewhere.example/b</loc></url>"
    site.add("/1.xml.gz", gzip.compress(f"<urlset {namespace}>{locations}</urlset>".encode()))
    site.add("/more.txt", f"{site.url}/c\n")
    add("/")
    add("/a")
    add("/c")
    assert paths(crawler(sitemaps=[f"{site.url}/more.txt"], follow_links=False).items(), site) == ["/", "/c", "/a"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<urlset><url><loc>", "corrupt"),
        (b'<!DOCTYPE u [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>', "corrupt"),
        (
            b'<!DOCTYPE u [<!ENTITY a SYSTEM "file:///etc/passwd">]><urlset><url><loc>/&a;</loc></url></urlset>',
            "corrupt",
        ),
        (gzip.compress(b"<urlset>" + bytes(60 * 2**20), 1), "too_large"),
    ],
)
def test_a_hostile_or_damaged_sitemap_is_a_problem(site, add, crawler, content, reason):
    site.add("/sitemap.xml", content)
    add("/")
    found = list(crawler(sitemaps=[f"{site.url}/sitemap.xml"]).items())
    assert (paths(found, site), problems(found, site)) == (["/"], {"/sitemap.xml": reason})


def test_other_content_is_not_downloaded(site, add, crawler):
    sent = []

    def film():
        for _ in range(1000):
            sent.append(1)
            yield b"x" * 100_000

    add("/", "/film")
    site.pages["/film"] = (200, {"Content-Type": "video/mp4"}, film())
    assert paths(crawler().items(), site) == ["/"]
    assert len(sent) < 500


@pytest.mark.parametrize(
    ("body", "headers", "reason"),
    [
        (b"x" * 10_001, {}, "too_large"),
        (gzip.compress(bytes(20_000_000), 1), {"Content_Encoding": "gzip"}, "too_large"),
        (b"\x1f\x8bnot", {"Content_Encoding": "gzip"}, "corrupt"),
    ],
)
def test_a_huge_or_damaged_page_is_a_problem(site, add, crawler, body, headers, reason):
    add("/", "/a")
    site.add("/a", body, Content_Type=HTML, **headers)
    assert problems(crawler(max_bytes=100_000 if "gzip" in str(headers) else 10_000).items(), site) == {"/a": reason}


def test_a_slow_drip_is_a_problem(site, add, crawler):
    def drip():
        while True:
            time.sleep(0.05)
            yield b"x"

    add("/", "/slow")
    site.pages["/slow"] = (200, {"Content-Type": HTML}, drip())
    source = crawler()
    source.client.limits = type(source.client.limits)(max_bytes=10_000, request_seconds=0.4)
    assert problems(source.items(), site) == {"/slow": "timeout"}


def test_a_page_that_is_no_html_at_all_harms_nothing(site, crawler):
    site.add("/", b"\0\xff<<<<<a href=>" + bytes(range(256)), Content_Type=HTML)
    assert paths(crawler().items(), site) == ["/"]


def test_what_was_remembered_under_other_limits_is_not_used(site, add, crawler):
    add("/", "/docs/a", ETag='"1"')
    add("/docs/a")
    list(crawler(prefixes=[f"{site.url}/other/", f"{site.url}/"]).items())
    site.requests.clear()
    list(crawler().items())
    assert "If-None-Match" not in dict(site.requests)["/"]


def test_a_damaged_store_costs_a_full_crawl_only(site, add, crawler):
    add("/")
    source = crawler()
    list(source.items())
    source.store._path.write_bytes(b"not a database at all, surely not one" * 100)
    assert paths(crawler().items(), site) == ["/"]


def test_a_page_that_changed_kind_since_it_was_listed_is_refused(site, add, crawler, tmp_path):
    add("/")
    (item,) = crawler().items()
    site.add("/", status=404)
    source = crawler()
    source.store._bodies = tmp_path / "nowhere"
    with pytest.raises(ItemError):
        source.read(item)


def capabilities(source):
    return [(it.name, it.ok) for it in source.preflight()]


def test_the_preflight_tells_what_is_missing(site, add, crawler):
    add("/")
    assert capabilities(crawler()) == [("reach", True), ("list", True), ("read", True)]
    site.add("/", status=403)
    assert capabilities(crawler())[-1] == ("read", False)
    site.add("/robots.txt", "User-agent: *\nDisallow: /")
    assert capabilities(crawler()) == [("reach", True), ("list", False)]
    with pytest.raises(ConfigError, match="does not allow"):
        crawler().check()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"start": []}, "start"),
        ({"start": ["ftp://host/"]}, "must begin with http"),
        ({"start": ["https://me:pw@host/"]}, "user or a password"),
        ({"max_pages": 0}, "max_pages"),
        ({"private_networks": ["10.0.0.0/99"]}, "private_networks"),
    ],
)
def test_a_wrong_config_is_named(crawler, config, said):
    with pytest.raises(ConfigError, match=said):
        crawler(**config)
