"""Source code by its grammar: where functions and classes begin and end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.ingest.parse.code_languages import LANGUAGES, parser_of
from retrieval.text.document import RawDocument
from tests.profiles import examples

SAMPLES = {
    "python": (
        "a.py",
        (
            'import os\n\n# What it is for.\n@cached\ndef load(path):\n    """Read it."""\n    return open(path)\n\n\n'
            "class Store(Base):\n    size = 3\n\n    def save(self):\n        pass\n"
        ),
        [(), ("load",), ("Store",), ("Store", "save")],
    ),
    "javascript": (
        "a.mjs",
        (
            "import x from 'y'\n\nexport const pick = (a) => {\n  return a\n}\n\nclass Cart extends Base {\n"
            "  total() {\n    return 1\n  }\n}\n\nmodule.exports = function () {\n  go()\n}\n"
        ),
        [(), ("pick",), ("Cart",), ("Cart", "total"), ("module.exports",)],
    ),
    "typescript": (
        "a.ts",
        (
            "import { a } from 'b'\n\nexport interface Order {\n  id: string\n}\n\n@Component({\n  x: 1,\n})\n"
            "export class View {\n  @Input() q: string\n\n  @Listen('x')\n  draw(): void {\n    go()\n  }\n}\n"
        ),
        [(), ("Order",), ("View",), ("View", "draw")],
    ),
    "tsx": ("a.tsx", "export function Button() {\n  return <b>\n    x\n  </b>\n}\n", [("Button",)]),
    "go": (
        "a.go",
        (
            "package main\n\n// Server serves.\ntype Server struct {\n\tport int\n}\n\n// Start begins.\n"
            "func (s *Server) Start() error {\n\treturn nil\n}\n\nfunc main() {\n\tgo run()\n}\n"
        ),
        [(), ("Server",), ("Server", "Start"), ("main",)],
    ),
    "java": (
        "A.java",
        (
            "package a;\n\nimport b.C;\n\n/** Says. */\npublic class Shop {\n    int x;\n\n    @Override\n"
            "    public void open() {\n        go();\n    }\n}\n"
        ),
        [(), ("Shop",), ("Shop", "open")],
    ),
    "rust": (
        "a.rs",
        (
            "use std::io;\n\n/// A point.\n#[derive(Debug)]\npub struct Point {\n    x: i32,\n}\n\nimpl Point {\n"
            "    fn norm(&self) -> i32 {\n        self.x\n    }\n}\n"
        ),
        [(), ("Point",), ("Point",), ("Point", "norm")],
    ),
    "c": (
        "a.c",
        "#include <a.h>\n\nstruct point {\n  int x;\n};\n\nstatic int *grow(int a)\n{\n  return 0;\n}\n",
        [(), ("point",), ("grow",)],
    ),
    "header": ("a.h", "#ifndef A_H\n#define A_H\n\nstruct point {\n  int x;\n};\n\n#endif\n", [(), ("point",)]),
    "c++": (
        "a.cpp",
        (
            "namespace geo {\n\ntemplate <class T>\nclass Box : Base {\n  int size() {\n    return 1;\n  }\n};\n\n"
            "int Shape::area(int a) {\n  return 2;\n}\n\n}\n"
        ),
        [("geo",), ("geo", "Box"), ("geo", "Box", "size"), ("geo", "Shape", "area")],
    ),
    "shell": ("a.sh", "#!/bin/sh\nset -e\n\n# Greets.\nhello() {\n  echo hi\n}\n\nhello\n", [(), ("hello",), ()]),
    "sql": (
        "a.sql",
        (
            "-- People.\nCREATE TABLE hr.person (\n  id int,\n  name text\n);\n\nSELECT 1;\n\n"
            "CREATE VIEW grown AS\n  SELECT * FROM hr.person;\n"
        ),
        [("hr.person",), (), ("grown",)],
    ),
    "c#": (
        "a.cs",
        (
            "using System;\n\nnamespace Shop\n{\n    [Serializable]\n    public class Cart\n    {\n"
            "        public int Total()\n        {\n            return 1;\n        }\n    }\n}\n"
        ),
        [(), ("Shop",), ("Shop", "Cart"), ("Shop", "Cart", "Total")],
    ),
    "ruby": (
        "a.rb",
        "require 'x'\n\nmodule Shop\n  class Cart < Base\n    def total\n      1\n    end\n  end\nend\n",
        [(), ("Shop",), ("Shop", "Cart"), ("Shop", "Cart", "total")],
    ),
    "php": (
        "a.php",
        "<?php\nuse A\\B;\n\n/** Says. */\nclass Cart {\n  public function total() {\n    return 1;\n  }\n}\n",
        [(), ("Cart",), ("Cart", "total")],
    ),
    "kotlin": (
        "a.kt",
        "import b.c\n\nclass Cart(val x: Int) {\n    fun total(): Int {\n        return 1\n    }\n}\n",
        [(), ("Cart",), ("Cart", "total")],
    ),
    "toml": ("a.toml", 'title = "x"\n\n[tool.ruff]\nline = 1\n', [(), ("tool.ruff",)]),
    "yaml": ("a.yml", "version: 3\n\n# All.\nservices:\n  web: a\n  db: b\n", [(), ("services",)]),
}


def read(name, text):
    return parse(RawDocument(name, text.encode()))


def paths(document):
    return [block.path for block in document.blocks]


def numbered(document):
    """Return every line of the blocks by its number."""
    return {
        block.row + place: line
        for block in document.blocks
        for place, line in enumerate(block.text.split("\n"))
        if line.strip()
    }


def lines_of(text):
    return {number: line.rstrip() for number, line in enumerate(text.split("\n"), start=1) if line.strip()}


@pytest.mark.parametrize(("name", "text", "expected"), SAMPLES.values(), ids=SAMPLES)
def test_functions_and_classes_are_told_apart(name, text, expected):
    document = read(name, text)
    assert paths(document) == expected
    assert document.source_type == "code"
    assert {number: line.rstrip() for number, line in numbered(document).items()} == lines_of(text)


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_every_grammar_can_be_loaded(language):
    assert not parser_of(language).parse(b"\n").root_node.has_error


def test_comments_and_decorators_stay_with_what_they_are_about():
    document = read(*SAMPLES["python"][:2])
    assert document.blocks[1].text.startswith("# What it is for.\n@cached\ndef load(path):")
    assert document.blocks[1].row == 3
    assert read(*SAMPLES["rust"][:2]).blocks[1].text.startswith("/// A point.\n#[derive(Debug)]\npub struct")
    assert read(*SAMPLES["go"][:2]).blocks[2].text.startswith("// Start begins.\nfunc")
    assert read(*SAMPLES["typescript"][:2]).blocks[3].text.startswith("  @Listen('x')\n  draw()")


def test_a_comment_above_a_blank_line_is_not_the_functions():
    document = read("a.py", "# Section.\n\ndef one():\n    return 1\n")
    assert [block.text for block in document.blocks] == ["# Section.", "def one():\n    return 1"]


def test_a_method_knows_the_lines_that_open_its_class():
    document = read(*SAMPLES["c#"][:2])
    assert document.blocks[3].header == (
        "namespace Shop\n{\n    public class Cart\n    {\n        …".replace(
            "    public", "    [Serializable]\n    public"
        )
    )
    assert document.blocks[0].header == ""


def test_a_large_function_is_opened_at_its_statements():
    body = "".join(f"    if x == {number}:\n        y = {number}\n        print(x, y)\n" for number in range(60))
    document = read("a.py", f"def big(x):\n{body}")
    assert len(document.blocks) > 2
    assert set(paths(document)) == {("big",)}
    assert all(block.text.lstrip().startswith(("def", "if")) for block in document.blocks)
    assert document.blocks[1].header == "def big(x):\n    …"


def test_the_title_is_the_files_name_and_the_folders_where_that_says_nothing():
    assert read("src/shop/cart.py", "x = 1").title == "cart.py"
    assert read("src/shop/__init__.py", "x = 1").title == "shop/__init__.py"
    assert read("src/Dockerfile", "FROM x").metadata == {"programming_language": "dockerfile"}
    assert read("CMakeLists.txt", "project(x)").source_type == "code"


def test_code_without_a_grammar_is_cut_at_blank_lines():
    document = read("a.lua", "local x = 1\n\nfunction f()\n  return x\nend\n")
    assert [(block.row, block.text) for block in document.blocks] == [
        (1, "local x = 1"),
        (3, "function f()\n  return x\nend"),
    ]


def test_a_file_that_is_not_in_its_language_is_cut_at_blank_lines():
    document = read("hyphen.cs", "% patterns\n.a4b\n.c3d\n\n.e5f\n.g1h\n")
    assert [block.row for block in document.blocks] == [1, 5]


def test_long_lines_are_cut_and_counted():
    document = read("bundle.min.js", "function a(){return 1};" * 100_000 + "\nlast()\n")
    assert document.metadata["cut_lines"] == "1"
    assert sum(len(block.text) for block in document.blocks) < 2_100
    assert document.blocks[-1].text.endswith("last()")


def test_line_numbers_are_those_of_an_editor():
    document = read("a.py", "x = 1\r\n\f\r\n\r\n\r\ndef f():\r\n    return 2\r\n")
    assert [(block.row, block.text) for block in document.blocks] == [(1, "x = 1"), (5, "def f():\n    return 2")]


def test_a_yaml_of_comments_is_read():
    assert [block.text for block in read("a.yaml", "# one\n\n# two\n").blocks] == ["# one\n\n# two"]


def test_a_large_yaml_is_opened_key_by_key():
    services = "".join(f"  web{number}:\n    image: nginx\n    port: {number}\n" for number in range(60))
    document = read("a.yaml", f"# Top.\nname: x\nservices:\n{services}list:\n- a\n- b\n")
    assert paths(document)[:3] == [(), ("services",), ("services", "web0")]
    assert document.blocks[3].header == "services:\n  …"
    assert paths(document)[-1] == ("list",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "x = " + "(" * 50_000 + ")" * 50_000),
        ("a.py", "(\n" * 20_000 + ")\n" * 20_000),
        ("a.py", "".join(" " * depth + "if x:\n" for depth in range(500))),
        ("a.c", "{\n" * 50_000),
        ("a.c", "#ifdef A\n" * 20_000),
        ("a.js", "f(function () {\n" * 5_000 + "})\n" * 5_000),
        ("a.sh", "cat <<A\n" * 5_000),
        ("a.cpp", "A<" * 20_000),
        ("a.yaml", "".join(" " * depth + "a:\n" for depth in range(1_000))),
        ("a.yaml", "- " * 900 + "a"),
    ],
    ids=range(10),
)
def test_nesting_that_no_person_writes_costs_little(name, text):
    document = read(name, text)
    assert numbered(document).keys() == lines_of(text).keys()


def test_a_file_of_blank_lines_is_empty():
    with pytest.raises(IngestError) as caught:
        read("a.py", "\n\f\n\u200b\n")
    assert caught.value.reason == "empty"


LINES = st.sampled_from([
    "def f(a):", "class A:", "    x = 1", "    def m(self):", "        return 2", "", "# why", "@deco", "}", "{",
    "x = [", "]", "func main() {", "end", "- a: 1", "key:", "  b: 2", "CREATE TABLE t (", ");", "'''", '"',
    "#ifdef A", "#endif", "if x {", "} else {", "/* a", "*/", "a; b; c", "public void m() {", "  ",
])  # fmt: skip


@settings(max_examples=examples(150))
@given(st.sampled_from(sorted({name for name, _, _ in SAMPLES.values()} | {"a.lua"})), st.lists(LINES, max_size=40))
def test_every_line_stands_in_exactly_one_block_under_its_number(name, lines):
    text = "\n".join(lines)
    if text.strip():
        document = read(name, text)
        assert {number: line.rstrip() for number, line in numbered(document).items()} == lines_of(text)
        rows = [block.row for block in document.blocks]
        assert rows == sorted(set(rows))
