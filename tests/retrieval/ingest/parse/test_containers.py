import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.text.document import RawDocument


def refusal_of(name, content):
    with pytest.raises(IngestError) as caught:
        parse(RawDocument(name, content))
    return caught.value.reason, str(caught.value)


@pytest.mark.parametrize(
    ("parts", "reason", "word"),
    [
        ({"EncryptedPackage": b"x" * 9000, "EncryptionInfo": b"y"}, "encrypted", "password"),
        ({"WordDocument": b"x" * 5000, "1Table": b"y"}, "unsupported_type", ".docx"),
        ({"PowerPoint Document": b"x"}, "unsupported_type", ".pptx"),
        ({"Something": {"else": b"x"}}, "unsupported_type", "old Office"),
    ],
)
@pytest.mark.parametrize("name", ["a.xlsx", "a.doc", "a.xls", "a"])
def test_old_and_locked_office_files_say_what_to_do(compound, name, parts, reason, word):
    found, message = refusal_of(name, compound(parts))
    assert found == reason
    assert word in message


@pytest.mark.parametrize(
    ("parts", "word"),
    [({"a.txt": "x"}, "Unpack it"), ({"xl/workbook.bin": "x"}, ".xlsx"), ({"Index/Document.iwa": "x"}, "PDF")],
)
def test_archives_say_what_to_do(zipped, parts, word):
    reason, message = refusal_of("a.zip", zipped(parts))
    assert (reason, word in message) == ("unsupported_type", True)


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0", "image"),
        ("photo", b"\xff\xd8\xff\xe0\0\x10JFIF\0", "image"),
        ("icon.svg", b"<svg xmlns='x'></svg>", "image"),
        ("a.tar.gz", b"\x1f\x8b\x08\0\0", "Unpack it"),
        ("song.mp3", b"ID3\x04\0\0\0", "Audio"),
        ("setup", b"MZ\x90\0\x03\0", "program"),
        ("film.mov", b"\0\0\0\x14ftypqt", "video"),
        ("random.bin", bytes(range(256)), "not supported"),
    ],
)
def test_other_files_say_what_they_are(name, content, word):
    reason, message = refusal_of(name, content)
    assert (reason, word in message) == ("unsupported_type", True)
