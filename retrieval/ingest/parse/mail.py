"""Mails, as files of the network (eml) and of Outlook (msg): header, text, attachments."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import EmailMessage, Message, MIMEPart
from email.policy import default
from email.utils import parsedate_to_datetime
from io import BytesIO
from typing import Any, Final

from oxmsg import Message as OutlookMessage

from retrieval.errors import IngestError
from retrieval.ingest.parse.decoding import decode, in_utf8
from retrieval.ingest.parse.finish import finished, lowered, one_line, tidy
from retrieval.ingest.parse.html import blocks_of_page
from retrieval.text.document import Block, BlockKind, ParsedDocument, Parser, RawDocument

_BLANK_LINES: Final = re.compile(r"\n\s*\n")
_ATTACHMENT_LEVEL: Final = 2
_MAX_READ: Final = 20  #: Attachments beyond these are named and not read.
_MAX_READ_BYTES: Final = 32 * 1024 * 1024
_MAX_NAMED: Final = 100
_MAX_LINE_LENGTH: Final = 1000
_MAX_REMARK_WORDS: Final = 50  #: A plain text that only says that there is a page is shorter, and the page has more
_PAGE_SHARE: Final = 2  #: than twice its words.
_MAIL_SUFFIX: Final = ".eml"
_HEADERS: Final = ("from", "to", "subject", "date", "received", "message-id")
_HEADER_START: Final = 4  #: In UTF-16 or UTF-32, one of the first bytes is not ASCII, or NUL.
_MAX_PARTS: Final = 1000
_MAX_HEADER_LENGTH: Final = 16_384
#: The library's time for a structured header is quadratic in its length.
_ENDLESS_HEADER: Final = re.compile(
    rb"^content-(?:[^\n]{16384}|[^\n]*(?:\n[ \t][^\n]*){200})", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mail:
    subject: str
    sender: str
    recipients: str
    copied: str = ""
    sent: datetime | None = None
    text: str = ""  #: The text without markup, which is preferred unless it is only a remark.
    html: bytes = b""
    html_charset: str = ""
    attachments: Sequence[RawDocument] = ()


def _mail_document(raw: RawDocument, mail: _Mail, read_attached: Parser) -> ParsedDocument:
    """Return a mail: its header as lines, its text, its attachments by name. Raises IngestError `empty`."""
    date = mail.sent.astimezone(UTC).isoformat(timespec="minutes") if mail.sent else ""
    shown_date = f"{mail.sent.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if mail.sent else ""
    head = {"From": mail.sender, "To": mail.recipients, "Cc": mail.copied, "Date": shown_date}
    lines = [f"{key}: {one_line(value)[:_MAX_LINE_LENGTH]}" for key, value in head.items() if value.strip()]
    blocks = [*_body(mail), *_attached(mail.attachments, read_attached)]
    if not blocks:
        raise IngestError("empty", "There is no text in the email.")
    return finished(
        raw,
        source_type="email",
        blocks=[Block(BlockKind.LIST, "\n".join(lines)), *blocks],
        metadata={
            "from": mail.sender,
            "to": mail.recipients,
            "cc": mail.copied,
            "date": date,
            "subject": mail.subject,
            "attachments": ", ".join(attached.name for attached in mail.attachments[:_MAX_NAMED]),
        },
        explicit_title=mail.subject,
    )


def _body(mail: _Mail) -> list[Block]:
    """Return the plain text of a mail; its page where there is none, or only a remark that there is a page."""
    text = tidy(mail.text)
    words = len(text.split())
    if mail.html.strip() and words < _MAX_REMARK_WORDS:
        with suppress(*(IngestError,) if words else ()):
            page = [lowered(block, _ATTACHMENT_LEVEL) for block in blocks_of_page(mail.html, mail.html_charset)]
            if sum(len(block.text.split()) for block in page) > _PAGE_SHARE * words:
                return page
    return [Block(BlockKind.PARAGRAPH, paragraph) for paragraph in _BLANK_LINES.split(text) if words]


def refuse_attached(_: RawDocument) -> ParsedDocument:
    """Refuse a file attached to an attached mail: attachments are read one level deep."""
    raise IngestError("unsupported_type", "It is an attachment of an attached email.")


def _attached(attachments: Sequence[RawDocument], read: Parser) -> Iterator[Block]:
    left = _MAX_READ_BYTES
    for count, attachment in enumerate(attachments[:_MAX_NAMED]):
        yield Block(BlockKind.HEADING, f"Attachment: {one_line(attachment.name)}", level=_ATTACHMENT_LEVEL)
        left -= len(attachment.content)
        if count >= _MAX_READ or left < 0:
            yield Block(BlockKind.PARAGRAPH, "Not read: the email has too many or too large attachments.")
            continue
        try:
            document = read(attachment)
        except IngestError as error:
            yield Block(BlockKind.PARAGRAPH, f"Not read: {error}")
        else:
            # Page and row numbers of an attachment do not belong to the mail.
            yield from (replace(lowered(block, _ATTACHMENT_LEVEL), page=None, row=None) for block in document.blocks)


def parse_eml(raw: RawDocument, read_attached: Parser) -> ParsedDocument:
    """Return a mail, with attached files by `read_attached`. Raises IngestError: `corrupt`, `too_large`, `empty`."""
    content, start = raw.content, raw.content[:_HEADER_START]
    # In a mail that begins with ASCII only a part can be wide, which is decoded with the part.
    if not start.isascii() or b"\0" in start:
        content = in_utf8(content)
    if _ENDLESS_HEADER.search(content):
        raise IngestError("too_large", "A header of the email is too long.")
    message = message_from_bytes(content, policy=default)
    if not isinstance(message, EmailMessage) or not any(name in message for name in _HEADERS):
        raise IngestError("corrupt", "The file is not an email.")
    if sum(1 for _ in _parts(message)) > _MAX_PARTS:
        raise IngestError("too_large", f"The email has more than {_MAX_PARTS} parts.")
    return _mail_document(raw, _mail(message), read_attached)


def _decoded_header(header: str) -> str:
    readable = _with_decoded_bytes(header[:_MAX_HEADER_LENGTH])
    try:
        return str(make_header(decode_header(readable)))
    except (HeaderParseError, UnicodeError, LookupError, ValueError):
        return readable


def _with_decoded_bytes(header: str) -> str:
    if not any("\udc80" <= character <= "\udcff" for character in header):
        return header
    written = header.encode("utf-8", "surrogateescape")
    try:
        return decode(written)
    except IngestError:
        return written.decode("utf-8", "replace")


def _mail(message: EmailMessage) -> _Mail:
    plain = message.get_body(("plain",))
    page = message.get_body(("html",))
    headers = {name.lower(): _decoded_header(str(value)) for name, value in reversed(list(message.raw_items()))}
    sent = None
    with suppress(ValueError):
        sent = parsedate_to_datetime(headers.get("date", ""))
    return _Mail(
        subject=headers.get("subject", ""),
        sender=headers.get("from", ""),
        recipients=headers.get("to", ""),
        copied=headers.get("cc", ""),
        sent=sent,
        text=decode(_bytes(plain), plain.get_content_charset() or "") if plain and _bytes(plain) else "",
        html=_bytes(page) if page else b"",
        html_charset=(page.get_content_charset() or "") if page else "",
        attachments=list(_attachments(message)),
    )


def _parts(message: EmailMessage) -> Iterator[object]:
    """Yield the parts, including those of attached mails, without recursion."""
    waiting: list[object] = [message]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, Message) and part.is_multipart():
            waiting.extend(part.get_payload())


def _bytes(part: "MIMEPart[Any, Any]") -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _attachments(message: EmailMessage) -> Iterator[RawDocument]:
    for number, part in enumerate(message.iter_attachments(), start=1):
        kind = part.get_content_type()
        name = part.get_filename() or f"part {number}"
        if kind == "message/rfc822" and part.is_multipart():
            ending = "" if name.lower().endswith(_MAIL_SUFFIX) else _MAIL_SUFFIX
            attached, content = part.get_payload(0), b""
            # It may be nested too deeply or invalid.
            with suppress(RecursionError, UnicodeError, LookupError, ValueError):
                content = attached.as_bytes() if isinstance(attached, Message) else b""
            yield RawDocument(name + ending, content, kind)
        else:
            charset = part.get_content_charset()
            yield RawDocument(name, _bytes(part), f"{kind}; charset={charset}" if charset else kind)


def parse_msg(raw: RawDocument, read_attached: Parser) -> ParsedDocument:
    """Return the document of an Outlook mail. Raises IngestError: `corrupt`, `empty`."""
    message = OutlookMessage.load(BytesIO(raw.content))
    headers = {name.lower(): value for name, value in message.message_headers.items()}
    people = (f"{person.name} <{person.email_address}>" for person in message.recipients if person.email_address)
    mail = _Mail(
        subject=message.subject or "",
        sender=_decoded_header(message.sender or ""),
        recipients=_decoded_header(headers.get("to", "")) or ", ".join(people),
        copied=_decoded_header(headers.get("cc", "")),
        sent=message.sent_date,
        text=message.body or "",
        html=(message.html_body or "").encode(),
        html_charset="utf-8",
        attachments=[
            RawDocument(it.file_name or f"part {number}", it.file_bytes or b"", it.mime_type or "")
            for number, it in enumerate(message.attachments, start=1)
        ],
    )
    return _mail_document(raw, mail, read_attached)
