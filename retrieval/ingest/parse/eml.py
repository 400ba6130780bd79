"""Mails as the network carries them (eml)."""

import re
from collections.abc import Iterator
from datetime import datetime
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import EmailMessage, Message, MIMEPart
from email.policy import default
from email.utils import parsedate_to_datetime
from typing import Any, Final

from retrieval.errors import IngestError
from retrieval.ingest.parse.decoding import decode, in_utf8
from retrieval.ingest.parse.mail import Mail, mail_document
from retrieval.text.document import ParsedDocument, Parser, RawDocument

_MAIL_TYPE: Final = "message/rfc822"
_MAIL_SUFFIX: Final = ".eml"
#: A file that begins otherwise is no mail: every mail has one of these.
_HEADERS: Final = ("from", "to", "subject", "date", "received", "message-id")
#: Bytes of which one is no ASCII, or a NUL, in a header in UTF-16 or UTF-32.
_HEADER_START: Final = 4
_MAX_PARTS: Final = 1000
_MAX_HEADER_LENGTH: Final = 16_384
#: The library's time for a structured header grows with the square of its length.
_ENDLESS_HEADER: Final = re.compile(
    rb"^content-(?:[^\n]{16384}|[^\n]*(?:\n[ \t][^\n]*){200})", re.IGNORECASE | re.MULTILINE
)


def parse_eml(raw: RawDocument, read_attached: Parser) -> ParsedDocument:
    """Return the document of a mail; `read_attached` reads the files that are attached to it.

    Raises IngestError: `corrupt`, `too_large`, `empty`.
    """
    content = _mail_bytes(raw.content)
    if _ENDLESS_HEADER.search(content):
        raise IngestError("too_large", "A header of the mail is out of all proportion.")
    message = message_from_bytes(content, policy=default)
    if not isinstance(message, EmailMessage) or not any(name in message for name in _HEADERS):
        raise IngestError("corrupt", "The file is not a mail.")
    if sum(1 for _ in _parts(message)) > _MAX_PARTS:
        raise IngestError("too_large", f"The mail has more than {_MAX_PARTS} parts.")
    return mail_document(raw, _mail(message), read_attached)


def _mail_bytes(content: bytes) -> bytes:
    """Return a mail as the network carries it, also where a program stored the whole of it in UTF-16 or UTF-32.

    In a mail that begins with ASCII only a part can be wide, which is decoded with the part.
    """
    return content if content[:_HEADER_START].isascii() and b"\0" not in content[:_HEADER_START] else in_utf8(content)


def decoded_header(header: str) -> str:
    """Return a header with its encoded words as text, as it stands when they are damaged."""
    readable = _with_bytes_read(header[:_MAX_HEADER_LENGTH])
    try:
        return str(make_header(decode_header(readable)))
    except (HeaderParseError, UnicodeError, LookupError, ValueError):
        return readable


def _with_bytes_read(header: str) -> str:
    """Return a header as text, also where its writer put bytes beyond ASCII into it as they are."""
    if not any("\udc80" <= character <= "\udcff" for character in header):
        return header
    written = header.encode("utf-8", "surrogateescape")
    try:
        return decode(written)
    except IngestError:
        return written.decode("utf-8", "replace")


def _mail(message: EmailMessage) -> Mail:
    plain = message.get_body(("plain",))
    page = message.get_body(("html",))
    headers = {name.lower(): decoded_header(str(value)) for name, value in reversed(list(message.raw_items()))}
    return Mail(
        subject=headers.get("subject", ""),
        sender=headers.get("from", ""),
        recipients=headers.get("to", ""),
        copied=headers.get("cc", ""),
        sent=_date(headers.get("date", "")),
        text=decode(_bytes(plain), plain.get_content_charset() or "") if plain and _bytes(plain) else "",
        html=_bytes(page) if page else b"",
        html_charset=(page.get_content_charset() or "") if page else "",
        attachments=list(_attachments(message)),
    )


def _date(header: str) -> datetime | None:
    try:
        return parsedate_to_datetime(header)
    except ValueError:
        return None


def _parts(message: EmailMessage) -> Iterator[object]:
    """Yield the parts, also those of attached mails, without going deeper than Python can."""
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
        if kind == _MAIL_TYPE and part.is_multipart():
            ending = "" if name.lower().endswith(_MAIL_SUFFIX) else _MAIL_SUFFIX
            yield RawDocument(name + ending, _attached_mail(part.get_payload(0)), kind)
        else:
            charset = part.get_content_charset()
            yield RawDocument(name, _bytes(part), f"{kind}; charset={charset}" if charset else kind)


def _attached_mail(message: object) -> bytes:
    """Return a mail as bytes, nothing when it is nested too deeply or holds what no mail can."""
    try:
        return message.as_bytes() if isinstance(message, Message) else b""
    except (RecursionError, UnicodeError, LookupError, ValueError):
        return b""
