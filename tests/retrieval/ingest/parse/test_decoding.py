import random

import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse.decoding import charset_of, decode, looks_binary

GERMAN = "Die Straße nach Köln ist gesperrt, für Gäste gibt es eine Umleitung über die Brücke."
JAPANESE = "これはテストです。日本語の文章を書いています。"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_common_encodings_are_read(encoding):
    assert decode(GERMAN.encode(encoding)) == GERMAN


def test_big_endian_text_with_a_mark_is_read():
    assert decode(b"\xfe\xff" + GERMAN.encode("utf-16-be")) == GERMAN


def test_an_undeclared_encoding_is_guessed():
    assert decode(JAPANESE.encode("shift_jis")) == JAPANESE


def test_a_declared_encoding_is_used():
    assert decode(b"caf\xe9", declared="latin-1") == "café"


def test_valid_utf8_wins_over_a_wrong_declaration():
    assert decode(GERMAN.encode(), declared="latin-1") == GERMAN


def test_an_unknown_declaration_is_ignored():
    assert decode(GERMAN.encode(), declared="no-such-charset") == GERMAN


def test_utf8_with_a_damaged_byte_stays_utf8():
    damaged = (GERMAN * 20).encode() + b"\xff" + GERMAN.encode()
    assert decode(damaged) == GERMAN * 20 + "\ufffd" + GERMAN


def test_random_bytes_are_binary():
    content = random.Random(1).randbytes(1024)
    assert looks_binary(content)
    with pytest.raises(IngestError) as caught:
        decode(content)
    assert caught.value.reason == "unsupported_type"


def test_one_nul_makes_binary():
    assert looks_binary(b"a perfectly readable line\0")
    assert not looks_binary(b"a perfectly readable line\n\twith a form feed\f")


def test_bytes_of_no_charset_are_refused():
    content = bytes(random.Random(2).choices(range(128, 256), k=4000))
    with pytest.raises(IngestError) as caught:
        decode(content)
    assert caught.value.reason == "encoding"


def test_the_charset_of_a_media_type_is_found():
    assert charset_of('text/html; boundary=x; Charset="ISO-8859-1"') == "ISO-8859-1"
    assert charset_of("text/html") == ""
