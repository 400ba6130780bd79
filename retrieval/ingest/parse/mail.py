"""What all mails are made of: who wrote to whom, the text, the attached files."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from retrieval.errors import IngestError
from retrieval.ingest.parse.finish import finished, one_line, tidy
from retrieval.ingest.parse.html import blocks_of_page
from retrieval.text.document import Block, BlockKind, ParsedDocument, Parser, RawDocument

_BLANK_LINES: Final = re.compile(r"\n\s*\n")
_ATTACHMENT_LEVEL: Final = 2
_DEEPEST_HEADING: Final = 6
#: Attachments beyond these are named and not read.
_MAX_READ: Final = 20
_MAX_READ_BYTES: Final = 32 * 1024 * 1024
_MAX_NAMED: Final = 100
#: People whose names are worth a line; a mail to more is a mail to all.
_MAX_LINE_LENGTH: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One mail, whatever file it comes from."""

    subject: str
    sender: str
    recipients: str
    copied: str = ""
    sent: datetime | None = None
    #: The text without markup; preferred, since it is what its writer saw of it last.
    text: str = ""
    html: bytes = b""
    html_charset: str = ""
    attachments: Sequence[RawDocument] = ()


def mail_document(raw: RawDocument, mail: Mail, read_attached: Parser) -> ParsedDocument:
    """Return the document of a mail: its head as lines, its text, each readable attachment below its name.

    Raises IngestError `empty` for a mail without any text.
    """
    date = mail.sent.astimezone(UTC).isoformat(timespec="minutes") if mail.sent else ""
    shown_date = f"{mail.sent.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if mail.sent else ""
    head = {"From": mail.sender, "To": mail.recipients, "Cc": mail.copied, "Date": shown_date}
    lines = [f"{key}: {one_line(value)[:_MAX_LINE_LENGTH]}" for key, value in head.items() if value.strip()]
    blocks = [*_body(mail), *_attached(mail.attachments, read_attached)]
    if not blocks:
        raise IngestError("empty", "There is no text in the mail.")
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


def refuse_attached(_: RawDocument) -> ParsedDocument:
    """Refuse a file attached to an attached mail: attachments are read one level deep."""
    raise IngestError("unsupported_type", "It is attached to an attached mail.")


def _body(mail: Mail) -> list[Block]:
    """Return the paragraphs of the text, or the blocks of the page when there is no text."""
    text = tidy(mail.text)
    if text.strip():
        return [Block(BlockKind.PARAGRAPH, paragraph) for paragraph in _BLANK_LINES.split(text)]
    if not mail.html.strip():
        return []
    return [_lowered(block) for block in blocks_of_page(mail.html, mail.html_charset)]


def _attached(attachments: Sequence[RawDocument], read: Parser) -> Iterator[Block]:
    """Yield each attachment below a heading with its name; one that cannot be read leaves its name."""
    left = _MAX_READ_BYTES
    for count, attachment in enumerate(attachments[:_MAX_NAMED]):
        yield Block(BlockKind.HEADING, f"Attachment: {one_line(attachment.name)}", level=_ATTACHMENT_LEVEL)
        left -= len(attachment.content)
        if count >= _MAX_READ or left < 0:
            yield Block(BlockKind.PARAGRAPH, "Not read: the mail has too many or too large attachments.")
            continue
        try:
            document = read(attachment)
        except IngestError as error:
            yield Block(BlockKind.PARAGRAPH, f"Not read: {error}")
        else:
            # Pages and rows of an attachment are not those of the mail.
            yield from (replace(_lowered(block), page=None, row=None) for block in document.blocks)


def _lowered(block: Block) -> Block:
    """Return a block below the mail's own headings."""
    if block.kind is not BlockKind.HEADING:
        return block
    return replace(block, level=min(block.level + _ATTACHMENT_LEVEL, _DEEPEST_HEADING))
