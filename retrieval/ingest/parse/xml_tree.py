"""XML as a tree: no entities, nothing fetched, and a bound on how deep it may be."""

import re
from typing import Final

from lxml import etree

from retrieval.errors import IngestError
from retrieval.ingest.parse.decoding import in_utf8, looks_binary

_ENTITY_DECLARATION: Final = re.compile(rb"<!ENTITY\b|<\0!\0E\0N\0T|\0<\0!\0E\0N\0T")
_XML_DECLARATION: Final = re.compile(rb"\A\s*<\?xml\b[^>]{0,200}\?>")
_WIDE_DECLARATION: Final = re.compile(
    rb"\A\s*<\?xml\b[^>]{0,200}\bencoding\s*=\s*[\"'](?:utf|ucs)-?(?:16|32|2|4)\b[^>]{0,200}\?>", re.IGNORECASE
)


def tree_of(content: bytes) -> etree._Element:
    """Return the root of an XML document; damage is passed over where it can be.

    Raises IngestError: `corrupt` when there is nothing to read and for a document that declares entities of
    its own (a few lines of those can stand for terabytes), `unsupported_type` when it is binary.
    """
    if looks_binary(content):
        raise IngestError("unsupported_type", "The file is binary, not text.")
    written = in_utf8(content)
    # What a file declares is wrong once it is UTF-8, and a file without NULs is not in UTF-16.
    content = (_WIDE_DECLARATION if written is content else _XML_DECLARATION).sub(b"", written)
    if _ENTITY_DECLARATION.search(content):
        raise IngestError("corrupt", "The file declares XML entities, which are not read.")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True, remove_comments=True
    )
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise IngestError("corrupt", "The file is damaged and cannot be read.") from error
    if root is None:
        raise IngestError("corrupt", "The file is damaged and cannot be read.")
    return root


def name_of(element: etree._Element) -> str:
    """Return an element's name without its namespace; empty for what is no element."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def local(element: etree._Element) -> str:
    """Return an element's name in small letters, for comparing."""
    return name_of(element).lower()
