"""Mails as Outlook keeps them (msg)."""

from collections.abc import Iterator
from io import BytesIO

from oxmsg import Message

from retrieval.ingest.parse.eml import decoded_header
from retrieval.ingest.parse.mail import Mail, mail_document
from retrieval.text.document import ParsedDocument, Parser, RawDocument


def parse_msg(raw: RawDocument, read_attached: Parser) -> ParsedDocument:
    """Return the document of an Outlook mail. Raises IngestError: `corrupt`, `empty`."""
    message = Message.load(BytesIO(raw.content))
    headers = {name.lower(): value for name, value in message.message_headers.items()}
    people = (f"{person.name} <{person.email_address}>" for person in message.recipients if person.email_address)
    mail = Mail(
        subject=message.subject or "",
        sender=decoded_header(message.sender or ""),
        recipients=decoded_header(headers.get("to", "")) or ", ".join(people),
        copied=decoded_header(headers.get("cc", "")),
        sent=message.sent_date,
        text=message.body or "",
        html=(message.html_body or "").encode(),
        html_charset="utf-8",
        attachments=list(_attachments(message)),
    )
    return mail_document(raw, mail, read_attached)


def _attachments(message: Message) -> Iterator[RawDocument]:
    for number, attached in enumerate(message.attachments, start=1):
        name = attached.file_name or f"part {number}"
        yield RawDocument(name, attached.file_bytes or b"", attached.mime_type or "")
