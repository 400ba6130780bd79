from retrieval.ingest.parse.text import parse_text


def test_paragraphs_stand_between_blank_lines(raw, shape):
    document = parse_text(raw("one\r\n  indented\r\n\r\n \r\ntwo\n", name="notes/shift-plan.txt"))
    assert document.title == "Shift plan"
    assert document.source_type == "text"
    assert shape(document) == [("paragraph", "one\n  indented"), ("paragraph", "two")]


def test_a_small_file_in_another_encoding_is_read(raw):
    content = "名前,年齢,住所\r\n佐藤太郎,30,東京\r\n三木英子,25,大阪\r\n".encode("cp932")
    assert parse_text(raw(content, name="a.csv")).blocks[0].text.startswith("名前,年齢,住所\n佐藤太郎,30")


def test_the_source_may_name_the_encoding(raw):
    document = parse_text(raw(b"caf\xe9", name="a.txt", media_type="text/plain; charset=latin-1"))
    assert document.blocks[0].text == "café"
