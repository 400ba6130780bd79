"""Input that cannot be read or stored is refused at every address, with a sentence and without a traceback."""

import asyncio
import logging
import re
from io import StringIO

import pytest
from django.conf import settings as configured
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.db import DataError
from django.http.multipartparser import MultiPartParserError
from django.test import Client
from django.urls import URLResolver, get_resolver

from corecube.errors import NotPermittedError, OverloadedError
from corecube.http import RequestIdMiddleware
from corecube.logs import RefusalFilter
from corecube.refusals import RefusalMiddleware
from tests.profiles import turn

HOSTILE = [
    "%00",
    "a%00b",
    "%ED%A0%80",
    "9" * 400,
    "-1",
    "1e999",
    "NaN",
    "%D9%A3",
    "%5B%22%5Cud800%22%5D",
    "%22%5Cu0000%22",
]
#: Hostile values of a part of a path.
PARAMETERS = ["%00", "a%00b", "%ED%A0%80", "%0A", "..", "%2e%2e%2fx", "x" * 5000, "9" * 400]
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=B"
API = ("api/", "v1/", "mcp")


def routes(patterns, before=""):
    """Yield every address's route, as Django writes them."""
    for pattern in patterns:
        route = before + str(pattern.pattern).lstrip("^")
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        else:
            yield route


def addresses(value):
    """Return every address, its parameters taken by `value`."""
    found = {
        re.sub(r"<[^>]+>|\(.*\)", value, it).rstrip("$").replace("\\", "") for it in routes(get_resolver().url_patterns)
    }
    return sorted(it for it in found if not it.startswith(("logout", "static/")))


def field_names():
    """Return the names that forms and links of the pages send."""
    texts = [it.read_text() for kind in ("html", "py") for it in (configured.BASE_DIR / "explorer").rglob(f"*.{kind}")]
    texts += [it.read_text() for it in (configured.BASE_DIR / "templates").rglob("*.html")]
    found = {name for text in texts for name in re.findall(r'(?:name="|[?&]|GET\.get\("|POST\.get\(")(\w+)', text)}
    return sorted(found | {"q", "o", "p", "e", "all", "action", "next", "_popup", "username__exact", "id__exact"})


@pytest.fixture
def admin(world):
    """Return a browser in which an admin is signed in, to whom a failure of a view is an answer."""
    client = Client(raise_request_exception=False)
    client.force_login(world.alice)
    return client


def failures(send, *parts):
    """Return the answers that are a failure of the server, each with what was sent."""
    answers = [(part, send(part)) for part in parts]
    assert answers
    return [(part, answer.status_code, answer.content[:200]) for part, answer in answers if answer.status_code >= 500]


@pytest.mark.parametrize("value", PARAMETERS)
def test_no_path_makes_an_address_fail(admin, value):
    paths = [f"/{it}" for it in addresses(value) if "<" not in it and value in it]
    requests = [(method, path) for method in ("GET", "POST", "DELETE") for path in paths]
    send = lambda it: admin.generic(*it, "{}", content_type="application/json")  # noqa: E731
    assert failures(send, *turn(requests, PARAMETERS.index(value), of=len(PARAMETERS))) == []


def test_a_page_whose_path_holds_nul_is_not_there(admin):
    assert admin.get("/judgments/a%00b/export.csv").status_code == 404
    assert admin.get("/admin/corecube/user/a%00b/change/").status_code == 404
    assert admin.get("/static/a%00b.css").status_code == 404


@pytest.mark.parametrize("value", HOSTILE)
def test_no_query_makes_a_page_fail(admin, value):
    query = "&".join(f"{name}={value}" for name in field_names())
    pages = [f"/{it}?{query}" for it in addresses("<") if "<" not in it and not it.startswith(API)]
    assert failures(admin.get, *turn(pages, HOSTILE.index(value), of=len(HOSTILE))) == []


@pytest.mark.parametrize("value", HOSTILE)
def test_no_form_makes_a_page_fail(admin, value):
    body = "&".join(f"{name}={value}" for name in field_names())
    pages = [f"/{it}" for it in addresses("x1") if not it.startswith(API)]
    pages = turn(pages, HOSTILE.index(value), of=len(HOSTILE))
    assert failures(lambda page: admin.generic("POST", page, body, content_type=FORM), *pages) == []


def part(name, content=b"x", filename=b"", more=b""):
    file = b'; filename="' + filename + b'"' if filename else b""
    return (
        b"--B\r\nContent-Disposition: form-data; name=" + name + file + more + b"\r\n\r\n" + content + b"\r\n--B--\r\n"
    )


@pytest.mark.parametrize("page", ["/connections/new/folder/", "/access/clearances/change/", "/judge/"])
def test_a_form_with_nul_is_refused_however_it_is_sent(admin, page):
    for body in (part(b'"compartment"', b"a\0b"), part(b'"com\0partment"'), part(b'"name"; filename="a\0b.md"')):
        assert 400 <= admin.generic("POST", page, body, content_type=MULTIPART).status_code < 500


@pytest.mark.parametrize(
    "page", ["/login/", "/", "/api/v1/search", "/api/v1/connections/runbooks/uploads", "/v1/models", "/mcp"]
)
def test_text_in_another_encoding_is_refused(db, client, page):
    for charset in ("raw_unicode_escape", "unicode_escape", "utf-7", "utf-16", "rot13", "hex", "idna", "latin-1"):
        answer = client.generic("POST", page, part(b'"a"', b"\\ud800"), content_type=f"{MULTIPART}; charset={charset}")
        assert answer.status_code == 415, charset
        assert "UTF-8" in answer.content.decode()
        assert page in {"/", "/login/"} or answer.json()["error"]["code"] == "unsupported_encoding"


@pytest.mark.parametrize("charset", ["utf-8", "UTF8", "us-ascii", "nonsense"])
def test_other_spellings_of_utf8_are_read(db, charset):
    answer = Client().generic(
        "POST", "/login/", part(b'"username"', b"bob"), content_type=f"{MULTIPART}; charset={charset}"
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/html; charset*=nonsense''x", "multipart/form-data; boundary*=nope'en'B", "a;b=1;b*=x'y'z"]
)
@pytest.mark.parametrize("path", ["/", "/api/v1/search"])
def test_a_content_type_that_django_cannot_read_is_refused(db, path, kind):
    assert asyncio.run(asked(path, [(b"content-type", kind.encode()), (b"host", b"127.0.0.1")])) < 500


async def asked(path, headers, query=b""):
    """Return the status that the ASGI application answers a request with."""
    from corecube.asgi import application

    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": headers,
        "client": ("192.0.2.1", 1),
        "http_version": "1.1",
        "scheme": "http",
    }
    await application(scope, receive, send)
    return sent[0]["status"]


HEADERS = [
    "Authorization",
    "X-CoreCube-User",
    "Idempotency-Key",
    "X-Request-ID",
    "HX-Current-URL",
    "HX-Target",
    "HX-Trigger",
    "Accept-Language",
    "Accept",
    "Accept-Encoding",
    "Range",
    "If-None-Match",
    "If-Modified-Since",
    "Referer",
    "Origin",
    "X-CSRFToken",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "Mcp-Protocol-Version",
    "Last-Event-ID",
]
VALUES = [
    "",
    "http://[",
    "\xff\xfe",
    "%ED%A0%80",
    "%00",
    "%0d%0aX: y",
    "9" * 5000,
    "Bearer \xed\xa0\x80",
    "bytes=5-2",
    "é" * 300,
]


ADDRESSES = {
    "/": "GET",
    "/log/": "GET",
    "/admin/": "GET",
    "/static/css/outside.css": "GET",
    "/api/v1/connections": "GET",
    "/api/v1/search": "POST",
    "/v1/models": "GET",
    "/mcp": "POST",
}


@pytest.mark.parametrize("signed_in", [True, False])
@pytest.mark.parametrize("path", ADDRESSES)
def test_no_header_makes_an_address_fail(people, path, signed_in):
    client = Client(raise_request_exception=False)
    if signed_in:
        client.force_login(people["alice"])
    around = {"HX-Request": "true", "HX-Current-URL-URI-AutoEncoded": "true"}
    send = lambda sent: client.generic(  # noqa: E731
        ADDRESSES[path], path, "{}", content_type="application/json", headers={**around, sent[0]: sent[1]}
    )
    sent = [(name, value) for name in HEADERS for value in VALUES]
    assert failures(send, *turn(sent, list(ADDRESSES).index(path) + signed_in, of=len(ADDRESSES))) == []


@pytest.mark.parametrize("name", ["sessionid", "csrftoken", "messages", "known_browser", "other"])
@pytest.mark.parametrize(
    "value", ['"abcdefgh\\000ijkl"', "\xff" * 32, '"\\355\\240\\200aaaaaaaa"', "x" * 5000, "%00" * 10]
)
def test_no_cookie_makes_a_page_fail(people, name, value):
    client = Client(raise_request_exception=False, headers={"Cookie": f"{name}={value}"})
    assert failures(client.get, "/", "/login/", "/admin/login/", "/api/v1/connections") == []
    form = {"username": "bob", "password": "b"}
    assert failures(lambda page: client.post(page, form), "/login/", "/admin/login/") == []


def answer_to(rf, error, path="/"):
    return RefusalMiddleware(None).process_exception(rf.get(path), error)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (NotPermittedError("Only an admin may do this."), 403, "Only an admin may do this."),
        (OverloadedError(reason="x", retry_after_seconds=7), 429, "in a moment"),
        (DataError("value too long"), 422, "too long"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), 422, "cannot be stored"),
    ],
)
def test_an_error_that_the_request_causes_is_answered_in_words(rf, error, status, words):
    for path in ("/", "/api/v1/search"):
        answer = answer_to(rf, error, path)
        assert answer.status_code == status
        assert words in answer.content.decode()
        assert answer.headers.get("Retry-After") == ("7" if status == 429 else None)


@pytest.mark.parametrize("error", [RuntimeError(), ValueError(), UnicodeEncodeError("ascii", "é", 0, 1, "ordinal")])
def test_any_other_error_stays_a_failure(rf, error):
    assert answer_to(rf, error) is None


@pytest.mark.parametrize(
    "error", [BadRequest("no"), SuspiciousOperation("no"), RequestDataTooBig("no"), MultiPartParserError("no")]
)
def test_a_refusal_is_one_line_of_the_log_and_no_error(rf, error, caplog):
    from django.core.handlers.exception import response_for_exception

    out = StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(RefusalFilter())
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        RequestIdMiddleware(None).process_exception(rf.get("/"), error)
        try:
            raise error
        except type(error) as caught:
            response = response_for_exception(rf.get("/"), caught)
    finally:
        logging.getLogger().removeHandler(handler)
    assert response.status_code == 400
    assert len(out.getvalue().splitlines()) == 1
    assert out.getvalue().startswith("WARNING ")


def test_a_failure_keeps_its_level_and_its_traceback():
    record = logging.LogRecord(
        "django.request", logging.ERROR, "", 1, "failed", (), (RuntimeError, RuntimeError(), None)
    )
    record.status_code = 500
    assert RefusalFilter().filter(record)
    assert record.levelno == logging.ERROR
    assert record.exc_info


def test_the_log_of_the_product_has_the_filter():
    assert configured.LOGGING["handlers"]["console"]["filters"] == ["refusals"]
