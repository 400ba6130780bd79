import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse

PAGE = """\
.. _label:

=====
Guide
=====

:Author: Ann

Intro with :ref:`a link <target>`, ``code``, `web <http://x.org>`_ and :py:class:`~foo.Bar`.

.. comment

Install
-------

.. note::

   Take care.

.. code-block:: python
   :linenos:

   print(1)

* one
* two

  - deeper

3. three
4. four

term
   its meaning

====  ====
Name  Size
====  ====
a     1
====  ====

Like so::

   literal text
"""


def read(raw, text):
    return parse(raw(text, "docs/guide.rst"))


def test_a_page_becomes_blocks_under_its_headings(shape, raw):
    document = read(raw, PAGE)
    assert shape(document) == [
        ("paragraph", "Author: Ann"),
        ("paragraph", "Intro with a link, code, web and foo.Bar."),
        (2, "Install"),
        ("paragraph", "Take care."),
        ("code", "print(1)"),
        ("list", "- one\n- two\n  - deeper\n3. three\n4. four\n- term\n  its meaning"),
        ("table", "Name | Size\na | 1"),
        ("paragraph", "Like so:"),
        ("code", "literal text"),
    ]
    assert (document.title, document.source_type) == ("Guide", "rst")
    assert document.blocks[6].header == "Name | Size"


def test_directives_of_sphinx_are_read_and_its_lists_of_files_are_not(shape, raw):
    page = """\
Title
=====

.. toctree::
   :maxdepth: 2

   one

.. versionadded:: 1.2
   The new thing.

.. function:: pick(a, b)
   :noindex:

   Picks *one* :term:`item`.

   .. seealso:: other
"""
    assert shape(read(raw, page)) == [
        ("paragraph", "versionadded 1.2"),
        ("paragraph", "The new thing."),
        ("paragraph", "pick(a, b)"),
        ("paragraph", "Picks one item."),
        ("paragraph", "other"),
    ]


@pytest.mark.parametrize(
    "directive",
    [
        ".. include:: {path}",
        ".. literalinclude:: {path}",
        ".. raw:: html\n   :file: {path}",
        ".. raw:: html\n   :url: {url}",
        ".. csv-table:: T\n   :file: {path}",
        ".. code-block:: text\n   :file: {path}",
        ".. figure:: {path}",
    ],
)
def test_no_file_is_read(raw, tmp_path, directive):
    secret = tmp_path / "secret.txt"
    secret.write_text("zanzibar")
    document = read(raw, f"Before.\n\n{directive.format(path=secret, url=secret.as_uri())}\n\nAfter.\n")
    assert "zanzibar" not in str(document)
    assert "Before." in str(document)
    assert "After." in str(document)


def test_directives_inside_directives_end_somewhere(raw):
    page = "\n\n".join("   " * depth + ".. outer:: level" for depth in range(40))
    assert 1 <= str(read(raw, page)).count("level") <= 10


def test_an_endless_line_is_refused(raw):
    with pytest.raises(IngestError) as caught:
        read(raw, "*a " * 5_000)
    assert caught.value.reason == "too_large"
