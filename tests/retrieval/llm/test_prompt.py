"""What a language model is shown, and what of it fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.types import QueryTerms
from retrieval.llm.neutral import neutral, plain
from retrieval.llm.prompt import REFUSAL, FenceFilter, PromptTooLongError, fitted, messages
from retrieval.llm.types import Task, Turn, Window
from tests.passages import made

FENCE = "00112233445566ff"


def count(texts):
    """A token is a word."""
    return [len(text.split()) for text in texts]


def task_of(passages=(), question="How long does it take?", history=()):
    return Task(question=question, passages=tuple(passages), terms=QueryTerms(), history=tuple(history))


def test_the_passages_stand_numbered_in_the_fence_and_the_question_after_them(passage):
    *_, asked = messages(task_of([passage(1, "Four minutes."), passage(2, "See [1].", title="Copy")]), fence=FENCE)
    assert asked == {
        "role": "user",
        "content": (
            f"Passages:\n\n<<<{FENCE}\n### [1] Leave and absence\nFour minutes.\n{FENCE}>>>\n\n"
            f"<<<{FENCE}\n### [2] Copy\nSee \\[1].\n{FENCE}>>>\n\n"
            "Question:\nHow long does it take?"
        ),
    }


def test_the_rules_name_the_fence_the_form_of_citations_and_the_refusal():
    system = messages(task_of(), fence=FENCE)[0]
    assert system["role"] == "system"
    assert all(part in system["content"] for part in (f"<<<{FENCE}", f"{FENCE}>>>", "[1][3]", REFUSAL))


def test_the_conversation_stands_between_with_its_old_numbers_gone(passage):
    history = [Turn("Who leads it?", "Greta does [1]."), Turn("Since when?", "Since 2021 [2][3].")]
    asked = messages(task_of([passage(1, "x")], history=history), fence=FENCE)
    assert [(it["role"], it["content"]) for it in asked[1:-1]] == [
        ("user", "Who leads it?"),
        ("assistant", "Greta does."),
        ("user", "Since when?"),
        ("assistant", "Since 2021."),
    ]


def test_all_of_a_long_question_is_asked():
    question = "word " * 1000 + "end"
    assert messages(task_of(question=question), fence=FENCE)[-1]["content"].endswith(question)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200bb\u2060c\ufeffd", "abcd"),
        ("\u0645\u06cc\u200c\u062e \u0915\u094d\u200d\u0937", "\u0645\u06cc\u200c\u062e \u0915\u094d\u200d\u0937"),
        ("a\u200db", "ab"),
        ("one\r\ntwo\u2028three\ttab\x00\x1b[1m", "one\ntwo\nthree\ttab[1m"),
        ("\U000e0041\U000e0101 \ue000", " "),
        ("é ☕ 漢字", "é ☕ 漢字"),
    ],
)
def test_only_what_can_be_seen_is_shown(text, shown):
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<|im_start|>system", "< |im_start|>system"),
        ("[INST] <<SYS>> </s>", "[ INST] < < SYS>> < /s>"),
        ("<<<abc\nabc>>>", "< < <abc\nabc> > >"),
        ("xs |> map <| f", "xs |> map <| f"),
        (">>> print(1)", ">>> print(1)"),
        ("[ERROR] row[i] <b>bold</b>", "[ERROR] row[i] <b>bold</b>"),
        ("row[1] and [2, 3]", "row\\[1] and \\[2, 3]"),
    ],
)
def test_what_speaks_to_models_becomes_plain_text_and_code_stays(text, shown):
    assert neutral(text) == shown


def test_without_a_window_all_is_kept(passage):
    task = task_of([passage(1, "x")] * 50)
    assert fitted(task, None, count).task == task


@pytest.fixture
def long_task(passage):
    """Five passages of 109 words each, as they are shown, and four turns of 116 with their frame."""
    passages = [passage(number, "word " * 100, title="Title") for number in range(1, 6)]
    return task_of(passages, history=[Turn(f"{n} " + "w " * 49, "a " * 50) for n in range(4)])


def room(task):
    """The words of the rules, the question and their frame."""
    bare = messages(task_of(question=task.question), fence=FENCE)
    return sum(count([it["content"] for it in bare])) + 16


@pytest.mark.parametrize(
    ("extra", "passages", "turns"), [(0, 0, 0), (110, 1, 0), (525, 5, 0), (650, 5, 1), (900, 5, 3), (1100, 5, 4)]
)
def test_the_oldest_turns_go_first_and_then_the_last_passages(long_task, extra, passages, turns):
    window = Window(context_tokens=round((room(long_task) + extra) / 0.85) + 101, answer_tokens=100)
    cut = fitted(long_task, window, count)
    assert (len(cut.task.passages), len(cut.task.history)) == (passages, turns)
    assert cut.task.passages == long_task.passages[:passages]
    assert cut.task.history == long_task.history[4 - turns :]
    assert (cut.left_out_passages, cut.left_out_turns) == (5 - passages, 4 - turns)
    assert cut.task.question == long_task.question


def test_a_question_that_alone_is_too_long_is_refused(long_task):
    with pytest.raises(PromptTooLongError):
        fitted(long_task, Window(context_tokens=200, answer_tokens=100), count)


@given(st.integers(400, 3000), st.integers(16, 300), st.integers(0, 8), st.integers(0, 8))
def test_what_is_kept_fits(context, answer, passage_count, turn_count):
    task = task_of(
        [made(number, "word " * 17 * number, "Title") for number in range(1, passage_count + 1)],
        history=[Turn("q " * 9 * number, "a " * 30) for number in range(turn_count)],
    )
    try:
        cut = fitted(task, Window(context, answer), count)
    except PromptTooLongError:
        return
    assert sum(count([it["content"] for it in messages(cut.task)])) + answer <= context


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (f"Yes [1].\n<<<{FENCE}\n### [1] Title\n{FENCE}>>>\nNo.", "Yes [1].\n### [1] Title\nNo."),
        (f"It is {FENCE}", "It is "),
        (f"{FENCE}>>> <<<{FENCE}>>>", " "),
        ("a <<< b 0011 >>> 00", "a <<< b 0011 >>> 00"),
        ("ends with <<", "ends with <<"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_fence_that_a_model_repeats_is_removed_from_its_answer(said, text, size):
    unfenced = FenceFilter(FENCE)
    pieces = [said[place : place + size] for place in range(0, len(said), size)]
    assert "".join([*map(unfenced.add, pieces), unfenced.finish()]) == text


def test_other_text_is_not_held_back():
    assert FenceFilter(FENCE).add("It takes four minutes") == "It takes four minutes"
