import pytest

from retrieval.text.traits import hints_of

TEXTS = {
    "table": "Region | Sales | Costs\nNorth | 12 | 9\nSouth | 14 | 8",
    "code": "Run this:\n\n```\nmake run\n```",
    "contact": "Write to help@example.org, any day.",
    "definition": "A compartment is a part of the organisation that is granted together.\nNothing else.",
    "figures": "Sales were $4.2 million, costs $3.1 million, a margin of 26 %.",
    "list": "- drain the queue\n- stop the worker\n- roll back",
    "question": "What happens to a stuck worker?\nIt is restarted.",
    "steps": "1. Drain the queue.\n2. Stop the worker.\n3. Roll back.",
}


@pytest.mark.parametrize(("hint", "text"), TEXTS.items())
def test_each_kind_is_seen_in_its_text(hint, text):
    assert hints_of(text) == (hint,)


@pytest.mark.parametrize(
    "text",
    [
        "Draining the queue takes four minutes. Error Q-4711 means that a worker is stuck.",
        "The ratio a | b is explained below.",
        "See section 1. It says more.\nAnd 2.5 of the rest.",
        "On 2024-05-01 the 12 345 678 records were moved.",
        "",
    ],
)
def test_plain_prose_has_no_hint(text):
    assert hints_of(text) == ()


def test_lines_of_code_are_told_without_a_fence():
    assert hints_of("def drain(queue):\n    queue.clear()\n    return True") == ("code",)
    assert hints_of('{\n  "took": 23,\n  "timed_out": false\n}') == ("code",)


def test_a_phone_number_is_a_contact_and_a_part_number_is_not():
    assert "contact" in hints_of("Phone: (425) 000-0000")
    assert "contact" in hints_of("Call +44 20 7946 0958 at night.")
    assert hints_of("Part 425-000-0000 fits.") == ()


def test_the_source_type_and_the_heading_speak_too():
    assert hints_of("x", source_type="code") == ("code",)
    assert hints_of("x", source_type="excel") == ("table",)
    assert hints_of("Restart it.", heading_path=("Help", "What if a worker is stuck?")) == ("question",)
    assert hints_of("Restart it.", heading_path=("What is it?", "Restart")) == ()
