"""Text in UTF-16 and UTF-32 without a byte order mark, in every format; and what only looks a little like it."""
# ruff: noqa: RUF001 -- texts in other alphabets

import base64
import json
import random
import struct
import zlib
from email.message import EmailMessage
from itertools import cycle, islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.ingest.parse.decoding import decode, looks_binary
from retrieval.ingest.parse.wide import wide_encoding
from retrieval.text.document import RawDocument
from tests.profiles import examples

ENCODINGS = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
TEXTS = {
    "English": "Draining the queue takes four minutes.\r\nA worker is stuck.\r\n",
    "German": "Die Straße nach Köln ist gesperrt, für Gäste gibt es eine Umleitung.",
    "Vietnamese": "Xin chào thế giới, đây là một văn bản bình thường.",
    "Russian": "Очередь опустошается за четыре минуты.",
    "Russian word": "Привет",
    "Greek": "Η ουρά αδειάζει σε τέσσερα λεπτά.",
    "Hebrew": "התור מתרוקן תוך ארבע דקות.",
    "Arabic": "تستغرق قائمة الانتظار أربع دقائق.",
    "Hindi": "कतार चार मिनट में खाली हो जाती है।",
    "Tamil": "வரிசை நான்கு நிமிடங்களில் காலியாகும்",
    "Thai": "คิวจะว่างภายในสี่นาที",
    "Georgian": "რიგი ოთხ წუთში იცლება",
    "Amharic": "ሰልፉ በአራት ደቂቃ ውስጥ ይጸዳል",
    "Japanese": "これはテストです。日本語の文章を書いています。",
    "Chinese": "这是一个测试文件，我们正在检查编码是否正确。",
    "Traditional Chinese": "這是一個測試檔案，我們正在檢查編碼是否正確。",
    "Korean": "이것은 한국어 문장입니다.",
    "symbols": "┌────┐\n│ ok │\n└────┘ 🎉",
    "numbers": "1;2;3\n4;5;6\n",
    "two letters": "hi",
    "two letters with an accent": "Sí",
    "two Russian letters": "Да",
}
WORDS = {
    "English": ["the", "queue", "is", "drained", "when", "no", "worker", "is", "stuck"],
    "Polish": ["zażółć", "gęślą", "jaźń", "i", "już"],
    "Russian": ["очередь", "ждёт", "пока", "рабочий", "занят"],
    "Greek": ["η", "ουρά", "περιμένει", "τον", "εργάτη"],
    "Arabic": ["الطابور", "ينتظر", "العامل", "المشغول"],
    "Hebrew": ["התור", "ממתין", "לעובד", "העסוק"],
    "Hindi": ["कतार", "व्यस्त", "कर्मचारी", "की", "प्रतीक्षा", "करती", "है"],
    "Chinese": ["队列", "正在", "等待", "工作", "人员"],
    "Japanese": ["キュー", "は", "作業", "を", "待って", "います"],
    "Korean": ["대기열이", "작업자를", "기다립니다"],
}
#: Texts of a few words of one language, sometimes with English ones among them, on one line or on several.
texts = st.sampled_from(sorted(WORDS)).flatmap(
    lambda language: st.lists(
        st.sampled_from([*WORDS[language], *WORDS[language], "worker", "Q-4711"]), min_size=3, max_size=40
    ).flatmap(lambda words: st.sampled_from(" \n").map(lambda space: space.join(words)))
)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_without_a_mark_is_read(text, encoding):
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["utf-16", *ENCODINGS])
def test_a_character_that_is_cut_off_does_no_harm(encoding):
    text = TEXTS["German"] + "🎉"
    content = text.encode(encoding)
    assert decode(content[:-3]).startswith(TEXTS["German"])
    assert decode(TEXTS["German"].encode(encoding)[:-1]) == TEXTS["German"][:-1]
    assert decode(TEXTS["German"].encode(encoding) + b"\n") == TEXTS["German"]


@settings(max_examples=examples(60))
@given(texts, st.sampled_from(ENCODINGS))
@example("\n".join(WORDS["Chinese"] * 2000), "utf-16-be")
def test_texts_in_many_scripts_come_back(text, encoding):
    assert decode(text.encode(encoding)) == text
    assert not looks_binary(text.encode(encoding))


@settings(max_examples=examples(60))
@given(texts)
def test_text_in_utf8_is_never_taken_for_wide(text):
    assert wide_encoding(text.encode()) == ""
    assert decode(text.encode()) == text


@pytest.mark.parametrize("declared", ["utf-16", "UTF-16LE", "utf-16be", "utf-32", "utf-8", "iso-8859-1", "nonsense"])
@pytest.mark.parametrize("encoding", ["utf-8", *ENCODINGS])
def test_how_a_text_reads_wins_over_what_is_declared(declared, encoding):
    assert decode(TEXTS["German"].encode(encoding), declared) == TEXTS["German"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_declaration_says_what_a_few_characters_cannot(encoding):
    for text in ("中文", "é"):
        assert decode(text.encode(encoding), encoding) == text
    assert decode("中文".encode(encoding), encoding.rpartition("-")[0]) == "中文"


LEGACY = {
    "cp1252": [TEXTS["German"], "Café", "Déjà vu à Nîmes", "Tänä vuonna", "Supprimer\xa0?"],
    "cp1250": ["Strona główna", "Zażółć gęślą jaźń", "Smazání bylo úspěšné"],
    "cp1251": [TEXTS["Russian"], "Привет"],
    "koi8-r": [TEXTS["Russian"], "Привет"],
    "cp1253": [TEXTS["Greek"]],
    "cp1255": [TEXTS["Hebrew"]],
    "cp1256": ["مرحبا بالعالم هذا نص عربي"],
    "shift_jis": [TEXTS["Japanese"]],
    "euc_jp": [TEXTS["Japanese"], "、" * 200],
    "gb18030": [TEXTS["Chinese"], "啊" * 200],
    "big5": [TEXTS["Traditional Chinese"]],
    "euc_kr": [TEXTS["Korean"]],
    "cp874": [TEXTS["Thai"]],
}


@pytest.mark.parametrize("encoding", LEGACY)
def test_old_encodings_are_no_wide_text(encoding):
    for text in LEGACY[encoding]:
        content = text.encode(encoding)
        for part in (content, content[1:], content[:-1], content * 50):
            assert wide_encoding(part) == ""
        assert decode(content, encoding) == text


def png():
    header = struct.pack(">2I5B", 16, 16, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(16 * 49))
    chunks = [(b"IHDR", header), (b"IDAT", pixels), (b"IEND", b"")]
    parts = (struct.pack(">I", len(it)) + kind + it + struct.pack(">I", zlib.crc32(kind + it)) for kind, it in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def wave(samples):
    sound = struct.pack(f"<{len(samples)}h", *samples)
    head = struct.pack("<4sI8sI2H2I2H", b"RIFF", 36 + len(sound), b"WAVEfmt ", 16, 1, 1, 8000, 16000, 2, 16)
    return head + struct.pack("<4sI", b"data", len(sound)) + sound


def integers(kind, values):
    return struct.pack(f"{kind[0]}{len(values)}{kind[1]}", *values)


RANDOM = random.Random(4)
SLOW_WAVE = [1100 + it % 97 for it in range(500)]
BINARY = {
    "zeros": bytes(4096),
    "one zero": b"a perfectly readable line\0",
    "png": png(),
    "elf": b"\x7fELF\x02\x01\x01"
    + bytes(9)
    + struct.pack("<2HI3QI6H", 3, 62, 1, 4096, 64, 9000, 0, 64, 56, 13, 64, 31, 30),
    "sqlite": b"SQLite format 3\0" + struct.pack(">H6B4I", 4096, 1, 1, 0, 64, 32, 32, 3, 2, 0, 0) + bytes(4000),
    "icon": struct.pack("<3H4B2H2I", 0, 1, 1, 16, 16, 0, 0, 1, 32, 1128, 22) + bytes(range(256)) * 4,
    "wave": wave([round(8000 * (it % 40 - 20) / 20) for it in range(2000)]),
    "quiet wave": wave([it % 9 - 4 for it in range(2000)]),
    "random": RANDOM.randbytes(4096),
    "few random bytes": b"\0" + RANDOM.randbytes(47),
    "counting": integers("<h", range(2000)),
    "counting in big endian": integers(">h", range(2000)),
    "measured": integers("<h", SLOW_WAVE),
    "measured in four bytes": integers("<i", SLOW_WAVE),
    "between 200 and 500": integers("<h", [RANDOM.randrange(200, 500) for _ in range(500)]),
    "between 1000 and 3000": integers(">h", [RANDOM.randrange(1000, 3000) for _ in range(500)]),
    "as high as ideographs": integers("<i", [RANDOM.randrange(20_000, 32_000) for _ in range(500)]),
    "floats": struct.pack("<500f", *(it / 7 for it in range(500))),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_files_are_refused_as_before(name):
    for size in (None, 4001, 1000, 200):
        content = BINARY[name][:size]
        assert wide_encoding(content) == ""
        if name == "one zero" or size is None:
            with pytest.raises(IngestError) as caught:
                parse(RawDocument("a.txt", content))
            assert caught.value.reason == "unsupported_type"


def test_random_bytes_are_no_wide_text():
    made = (RANDOM.randbytes(RANDOM.randrange(40, 600)) for _ in range(300))
    assert [content for content in made if wide_encoding(content)] == []


NOTEBOOK = {
    "cells": [{"cell_type": "markdown", "source": ["# Köln"]}, {"cell_type": "code", "source": "print(1)"}],
    "metadata": {},
}
FILES = {
    "a.txt": "Hello Köln.\r\n\r\nFor guests there is a détour.\r\n",
    "a.log": "2024-01-01 INFO started\r\n2024-01-01 WARN stopped\r\n",
    "a.md": "# Title\n\nText about *Köln*.\n\n- one\n- two\n",
    "a.rst": "Title\n=====\n\nText about Köln.\n",
    "a.csv": "Name;Größe\n1;2\n3;4\n",
    "a.tsv": "Name\tGröße\n1\t2\n",
    "old.xls": "Name\tGröße\n1\t2\n",
    "a.json": '{"name": "Köln", "n": 1}',
    "a.ndjson": '{"a": "Köln"}\n{"a": "x"}\n',
    "a.xml": '<?xml version="1.0" encoding="utf-16"?>\n<root><item>Köln</item></root>',
    "b.xml": "<root><item>Köln</item></root>",
    "feed": '<?xml version="1.0"?><rss><channel><item><title>A</title><description>Köln</description></item></channel>'
    "</rss>",
    "a.html": '<!DOCTYPE html><meta charset="utf-8"><title>Köln</title><h1>Hi</h1><p>Text about Köln</p>',
    "page": "<!DOCTYPE html><title>Köln</title><h1>Hi</h1><p>Text about Köln</p>",
    "a.ipynb": json.dumps(NOTEBOOK, ensure_ascii=False),
    "a.py": 'def found():\n    """Köln."""\n    return 1\n',
    "a.yaml": "name: Köln\nlist:\n  - a\n",
    "a.ini": "[main]\nname = Köln\n",
    "a.reg": 'Windows Registry Editor Version 5.00\r\n\r\n[HKEY_CURRENT_USER\\Software]\r\n"A"="B"\r\n',
    "a.rtf": "{\\rtf1\\ansi Hello world.\\par}",
    "a.eml": "From: Jörg <joerg@example.com>\r\nSubject: Grüße\r\n\r\nText about Köln\r\n",
    "README": "A plain text\n",
}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", *ENCODINGS])
@pytest.mark.parametrize("name", FILES)
def test_every_format_of_text_is_read(name, encoding):
    text = FILES[name]
    narrow = parse(RawDocument(name, text.replace("utf-16", "utf-8").encode()))
    assert parse(RawDocument(name, text.encode(encoding))) == narrow


def test_a_document_type_with_entities_is_refused_in_every_encoding():
    text = '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>'
    for encoding in ["utf-8", "utf-16", "utf-32", *ENCODINGS]:
        with pytest.raises(IngestError, match="entities"):
            parse(RawDocument("a.xml", text.encode(encoding)))


def mail(charset, transfer, body):
    parameter = f"; charset={charset}" if charset else ""
    head = f"From: ann@example.com\r\nSubject: x\r\nContent-Type: text/plain{parameter}\r\n"
    return f"{head}Content-Transfer-Encoding: {transfer}\r\n\r\n".encode() + body


@pytest.mark.parametrize("charset", ["utf-16", "utf-16le", "utf-16be", "utf-32", "utf-8", "iso-8859-1", ""])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_mail_is_read_whatever_it_declares(shape, charset, encoding):
    text = "For guests there is a détour.\r\n\r\nОчередь опустошается."
    expected = [("paragraph", "For guests there is a détour."), ("paragraph", "Очередь опустошается.")]
    body = text.encode(encoding)
    for transfer, sent in (("8bit", body), ("base64", base64.encodebytes(body))):
        assert shape(parse(RawDocument("a.eml", mail(charset, transfer, sent))))[1:] == expected


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", *ENCODINGS])
def test_a_mail_that_was_stored_in_a_wide_encoding_is_read(shape, encoding):
    text = (
        "From: Jörg <joerg@example.com>\nSubject: Grüße aus Köln\nContent-Type: text/plain; charset=utf-16\n\nEin Gruß."
    )
    document = parse(RawDocument("a.eml", text.encode(encoding)))
    assert (document.title, document.metadata["from"]) == ("Grüße aus Köln", "Jörg <joerg@example.com>")
    assert shape(document)[1:] == [("paragraph", "Ein Gruß.")]


def test_attached_texts_are_read_by_what_they_are_and_what_they_declare(shape):
    message = EmailMessage()
    message["From"], message["Subject"] = "ann@example.com", "Attached"
    message.set_content("See below.")
    message.add_attachment("Name;Größe\r\n1;2\r\n".encode("utf-16-le"), "text", "csv", filename="a.csv")
    message.add_attachment(
        "中文".encode("utf-16-be"), "text", "plain", filename="b.txt", params={"charset": "utf-16be"}
    )
    message.add_attachment("Да".encode("cp1251"), "text", "plain", filename="c.txt", params={"charset": "cp1251"})
    texts = [text for _, text in shape(parse(RawDocument("a.eml", bytes(message))))]
    assert texts[2::2] == ["Attachment: a.csv", "Attachment: b.txt", "Attachment: c.txt"]
    assert texts[3::2] == ["Name | Größe\n1 | 2", "中文", "Да"]


def test_much_damage_is_refused_and_a_little_is_replaced():
    text = "".join(islice(cycle(TEXTS["Russian"]), 6000))
    content = text.encode("utf-16-le")
    assert decode(content[:10_000] + b"\x00\xd8" + content[10_000:]).count("\ufffd") == 1
    with pytest.raises(IngestError) as caught:
        decode(content[:10_000] + b"\x00\xd8\x41\x00" * 2000)
    assert caught.value.reason == "encoding"
