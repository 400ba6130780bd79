from retrieval.ingest.parse.markdown import split_front_matter


def test_scalars_are_read_and_unquoted():
    facts, body = split_front_matter(
        '---\ntitle: "Say \\"hi\\"" # greeting\nDate: 2024-05-01 # day\nempty:\n---\nBody\n'
    )
    assert facts == {"title": 'Say "hi"', "date": "2024-05-01", "empty": ""}
    assert body == "Body\n"


def test_lists_become_one_value():
    facts, _ = split_front_matter("---\ntags: [a, 'b']\naliases:\n  - /one/\n- /two/\n---\n")
    assert facts == {"tags": "a, b", "aliases": "/one/, /two/"}


def test_folded_text_is_joined():
    facts, _ = split_front_matter("---\ndescription: >-\n  first line\n  second line\nnext: x\n---\n")
    assert facts == {"description": "first line second line", "next": "x"}


def test_toml_is_read():
    facts, body = split_front_matter('+++\ntitle = "Plan"\n+++\n# Text')
    assert (facts, body) == ({"title": "Plan"}, "# Text")


def test_a_rule_inside_the_text_is_no_front_matter():
    text = "Intro\n\n---\nname: value\n---\n"
    assert split_front_matter(text) == ({}, text)


def test_front_matter_that_nothing_closes_is_text():
    text = "---\ntitle: x\n"
    assert split_front_matter(text) == ({}, text)


def test_aliases_and_tags_are_only_text():
    facts, _ = split_front_matter("---\na: &x [lol]\nb: *x\nc: !!python/object:os.system x\n---\n")
    assert facts == {"a": "&x [lol]", "b": "*x", "c": "!!python/object:os.system x"}
