import pytest

from retrieval.ingest.parse.markdown import without_generator_tags


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("A {% include copy.html %}B", "A B"),
        ("A {% include code.html\n    rest=one\n    python=two %}B", "A B"),
        ("Text.\n{: .note}\nMore.", "Text.\n\nMore."),
        ("![x](y.png){: width='70' }", "![x](y.png)"),
        ("## Title {#anchor}\nText", "## Title\nText"),
        ("* TOC\n{:toc}\nText", "\nText"),
        ("[a]({{site.url}}{{ site.baseurl }}/b)", "[a](/b)"),
        ("A{% comment %}hidden {% if %} text{% endcomment %}B", "AB"),
        ("A {% raw %}{{ user }}{% endraw %} B", "A {{ user }} B"),
    ],
)
def test_tags_of_the_generator_are_removed(markdown, text):
    assert without_generator_tags(markdown) == text


@pytest.mark.parametrize(
    "markdown",
    [
        "```\n{% include x %}\n{: .note}\n```",
        "~~~~\n{{ site.url }}\n```\n~~~~",
        "Use `{% include x %}` or ``{{ site.url }} ` ``.",
        "A template says {{ name }}.",
        '{"json": {"stays": true}}',
    ],
)
def test_what_is_code_or_text_stays(markdown):
    assert without_generator_tags(markdown) == markdown


def test_a_comment_that_nothing_closes_hides_nothing():
    assert without_generator_tags("A {% comment %}open end") == "A open end"


def test_a_capture_becomes_a_code_block():
    text = without_generator_tags("{% capture rest %}\nGET /_search\n{% endcapture %}")
    assert text == "\n~~~~~~\n\nGET /_search\n\n~~~~~~\n"


def test_raw_tags_inside_code_are_removed():
    assert without_generator_tags("```\n{% raw %}\n{{ a }}\n{% endraw %}\n```") == "```\n{{ a }}\n```"
