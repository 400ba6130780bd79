import struct
from email.message import EmailMessage
from email.policy import SMTP

import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.text.document import RawDocument


def mail(text="The keel is done.", subject="Kiel für Bob", **headers):
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"], message["Subject"] = "Ann Lee <ann@example.com>", "bob@example.com", subject
    message["Date"] = "Tue, 05 Mar 2024 19:30:00 +0100"
    for name, value in headers.items():
        message[name] = value
    if text:
        message.set_content(text)
    return message


def read(message, name="a.eml"):
    return parse(RawDocument(name, bytes(message)))


HEAD = ("list", "From: Ann Lee <ann@example.com>\nTo: bob@example.com\nDate: 2024-03-05 18:30 UTC")


def test_a_mail_begins_with_who_wrote_to_whom(shape):
    document = read(mail("Hello Bob,\n\nthe keel is done.", Cc="cay@example.com"))
    assert (document.title, document.source_type) == ("Kiel für Bob", "email")
    assert document.metadata["from"] == "Ann Lee <ann@example.com>"
    assert document.metadata["date"] == "2024-03-05T18:30+00:00"
    assert shape(document) == [
        ("list", HEAD[1].replace("\nDate", "\nCc: cay@example.com\nDate")),
        ("paragraph", "Hello Bob,"),
        ("paragraph", "the keel is done."),
    ]


def test_the_text_is_preferred_to_the_page(shape):
    message = mail()
    message.add_alternative("<p>The <b>keel</b> is done.</p>", subtype="html")
    assert shape(read(message))[1:] == [("paragraph", "The keel is done.")]


@pytest.mark.parametrize(
    ("text", "page", "found"),
    [
        (
            "See the page.",
            "<p>From 19 May the network is called <b>Guest</b>.</p>",
            "From 19 May the network is called Guest.",
        ),
        ("See the page.", "<p>The page is here.</p>", "See the page."),
        ("See the page.", "<script>x</script>", "See the page."),
        ("Long. " * 60, "<p>Longer.</p>" * 400, ("Long. " * 60).strip()),
    ],
)
def test_the_page_is_read_where_the_text_only_says_that_there_is_one(shape, text, page, found):
    message = mail(text)
    message.add_alternative(page, subtype="html")
    assert shape(read(message))[1:] == [("paragraph", found)]


def test_a_page_alone_is_read(shape):
    page = "<style>p{}</style><h1>News</h1><div style='display:none'>x</div><p>Kiel für 5 €.</p>"
    head = b"Subject: Keel\nContent-Type: text/html; charset=iso-8859-15\n\n"
    found = shape(parse(RawDocument("a.eml", head + page.encode("iso-8859-15"))))
    assert found == [(3, "News"), ("paragraph", "Kiel für 5 €.")]


def test_attachments_are_read_below_their_names(shape, xlsx_bytes):
    message = mail()
    message.add_attachment(b"# Plan\n\nStep one.", maintype="text", subtype="markdown", filename="plan.md")
    sheet = xlsx_bytes(lambda sheet: [sheet.append(["City", "Sales"]), sheet.append(["Oslo", 3])])
    message.add_attachment(sheet, maintype="application", subtype="octet-stream", filename="sales.xlsx")
    message.add_attachment(b"\x89PNG\r\n\0", maintype="image", subtype="png", filename="photo.png")
    document = read(message)
    assert shape(document)[2:] == [
        (2, "Attachment: plan.md"),
        ("paragraph", "Step one."),
        (2, "Attachment: sales.xlsx"),
        (4, "Sheet"),
        ("table", "City | Sales\nOslo | 3"),
        (2, "Attachment: photo.png"),
        ("paragraph", "Not read: This is an image. Images are not supported."),
    ]
    assert document.metadata["attachments"] == "plan.md, sales.xlsx, photo.png"
    assert {block.row for block in document.blocks} == {None}


def test_an_attached_mail_is_read_without_its_attachments(shape):
    inner = mail("Inside.", subject="Inner")
    inner.add_attachment(b"secret text", maintype="text", subtype="plain", filename="deep.txt")
    message = mail()
    message.add_attachment(inner)
    texts = [text for _, text in shape(read(message))]
    assert "Inside." in texts
    assert "Attachment: deep.txt" in texts
    assert not any("secret text" in text for text in texts)


def test_a_mail_nested_a_hundred_times_is_read_two_deep():
    message = mail("Level 0.")
    for level in range(1, 101):
        outer = mail(f"Level {level}.")
        outer.add_attachment(message)
        message = outer
    texts = [block.text for block in read(message).blocks]
    assert [text for text in texts if text.startswith("Level")] == ["Level 100.", "Level 99."]


def test_too_many_attachments_are_named_only():
    message = mail()
    for number in range(30):
        message.add_attachment(f"text {number}".encode(), maintype="text", subtype="plain", filename=f"{number}.txt")
    texts = [block.text for block in read(message).blocks]
    assert "text 19" in texts
    assert "text 20" not in texts
    assert "Attachment: 29.txt" in texts


def reason_of(content, name="a.eml"):
    with pytest.raises(IngestError) as caught:
        parse(RawDocument(name, content))
    return caught.value.reason


def test_what_cannot_be_read_has_a_reason():
    assert reason_of(b"no headers here") == "corrupt"
    assert reason_of(bytes(mail(text=""))) == "empty"
    assert reason_of(b"Subject: x\nContent-Type: text/plain; a=" + b"(" * 100_000) == "too_large"
    assert reason_of(b"Subject: x\nContent-Type: text/plain;" + b"\n a=b;" * 10_000) == "too_large"
    part = b"--b\nContent-Type: text/plain\n\nx\n"
    assert (
        reason_of(b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + part * 2000 + b"--b--") == "too_large"
    )


def test_damaged_headers_and_charsets_are_no_harm(shape):
    head = b"From: =?utf-8?B?////?= <a@b>\nSubject: =?x-none?Q?abc?=\nDate: yesterday\n"
    content = head + b"Content-Type: text/plain; charset=x-none\n\nHello"
    assert shape(parse(RawDocument("a.eml", content)))[-1] == ("paragraph", "Hello")


def test_a_mail_to_thousands_is_quick_to_read():
    people = ", ".join(f"Person {number} <p{number}@example.com>" for number in range(20_000))
    document = parse(RawDocument("a.eml", f"To: {people}\nSubject: All\n\nHello".encode()))
    assert len(document.blocks[0].text) < 2000


STRING, BINARY, TIME = 0x001F, 0x0102, 0x0040


def properties(head, values):
    """Return the streams of Outlook properties: by id, texts, bytes, or a whole number for a time."""
    table, streams = b"\0" * head, {}
    for identity, value in values.items():
        kind = STRING if isinstance(value, str) else BINARY if isinstance(value, bytes) else TIME
        content = value.encode("utf-16-le") if kind == STRING else value
        if kind == TIME:
            table += struct.pack("<HHIQ", kind, identity, 6, value)
        else:
            table += struct.pack("<HHIII", kind, identity, 6, len(content) + 2 * (kind == STRING), 0)
            streams[f"__substg1.0_{identity:04X}{kind:04X}"] = content
    return {"__properties_version1.0": table, **streams}


HEADERS = (
    "From: =?utf-8?Q?Ann_L=C3=A9e?= <ann@example.com>\nTo: bob@example.com\nDate: Tue, 05 Mar 2024 19:30:00 +0100\n"
)


def test_an_outlook_mail_is_read_as_any_other(compound, shape):
    attachment = properties(8, {0x3707: "plan.md", 0x3701: b"# Plan\n\nStep one."})
    message = properties(32, {0x001A: "IPM.Note", 0x0037: "Keel", 0x1000: "The keel is done.\r\n", 0x007D: HEADERS})
    document = parse(RawDocument("a.msg", compound({**message, "__attach_version1.0_#00000000": attachment})))
    assert (document.title, document.source_type) == ("Keel", "email")
    assert document.metadata["from"] == "Ann Lée <ann@example.com>"
    assert shape(document)[1:] == [
        ("paragraph", "The keel is done."),
        (2, "Attachment: plan.md"),
        ("paragraph", "Step one."),
    ]


def test_a_damaged_outlook_mail_says_so(compound):
    assert reason_of(compound({"__properties_version1.0": b"x" * 40}), "a.msg") in {"corrupt", "empty"}
