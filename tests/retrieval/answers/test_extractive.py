"""Answers that only quote."""

import asyncio
import math
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.extractive import ExtractiveProvider, chosen_texts, extract_answer
from retrieval.answers.quoting import Quote, choose
from retrieval.answers.threads import AnswerThreads
from retrieval.engine.types import QueryTerms, Term, Verdict
from retrieval.llm.citations import find_citations
from retrieval.llm.types import Task, Turn
from retrieval.ranking.quotes.candidates import candidates, embedded_texts, runs
from retrieval.ranking.quotes.ranker import Scored
from retrieval.text.units import Unit, UnitKind
from tests.fakes import HashEncoder
from tests.passages import judged, made


async def gather(stream):
    return [item async for item in stream]


def read(stream):
    return asyncio.run(gather(stream))


def cosines_of(question, passages, encoder):
    """Return the cosines that a search of the passages reads, by an encoder."""
    asked, found = encoder.encode_query(question), {}
    for chunk_id, chunk in ((it.hit.chunk_id, it.hit.chunk) for it in passages):
        vectors = encoder.encode_documents(embedded_texts(chunk.title, chunk.heading_path, chunk.text))
        found[chunk_id] = dict(zip(runs(chunk.text), (vectors @ asked).tolist(), strict=True))
    return found


def task_of(question, passages, terms, verdict=Verdict.ANSWERABLE, encoder=None):
    cosines = cosines_of(question, passages, encoder) if encoder else {}
    answerability = judged(verdict)
    return Task(question=question, passages=tuple(passages), terms=terms, answerability=answerability, cosines=cosines)


def answer_to(question, passages, terms, encoder=None, verdict=Verdict.ANSWERABLE):
    return extract_answer(task_of(question, passages, terms, verdict, encoder))


@pytest.fixture
def leave(passage):
    return (
        passage(
            1, "Ask in the roster app. For more than five days, ask three weeks ahead.", headings=("Asking for it",)
        ),
        passage(
            2, "Everyone who works full time has 27 days of paid leave. After ten years 29.", headings=("How much",)
        ),
        passage(3, "Days that you could not take because of sickness do not lapse.", headings=("Carrying over",)),
    )


def test_it_quotes_the_best_sentence_word_for_word_with_its_number(leave, terms):
    answer = answer_to("How many days of paid leave?", leave, terms(paid=3.0, leav=1.0, day=0.5))
    assert "\n> Everyone who works full time has 27 days of paid leave." in answer.text
    assert answer.citations[0].number == 2
    assert answer.extractive
    assert not answer.refused


def test_it_starts_by_saying_that_it_quotes(leave, terms):
    first = answer_to("paid leave", leave, terms(paid=3.0, leav=1.0)).text.splitlines()[0]
    assert first == "Quoted from your documents:"


def test_citations_span_the_markers(leave, terms):
    answer = answer_to("paid leave", leave, terms(paid=3.0, leav=1.0))
    assert [answer.text[it.start : it.end] for it in answer.citations] == [f"[{it.number}]" for it in answer.citations]


def test_it_refuses_what_the_verdict_calls_not_answerable_and_says_why_and_what_is_nearest(leave, terms):
    why = "No document that was searched contains “pension”."
    verdict = judged(Verdict.NOT_ANSWERABLE, reason="unknown_terms", explanation=why)
    task = replace(task_of("Which pension fund?", leave, terms(pension=5.0, fund=4.0)), answerability=verdict)
    answer = extract_answer(task)
    assert answer.refused
    assert answer.text == (
        "I couldn't find this in your documents. No document that was searched contains “pension”. "
        "Closest documents: “Leave and absence” [1]."
    )


@pytest.mark.parametrize("verdict", [judged(Verdict.PARTIAL), None])
def test_what_may_not_be_answerable_gets_the_nearest_text_and_says_so(leave, terms, verdict):
    task = replace(task_of("paid leave", leave, terms(paid=3.0, leav=1.0)), answerability=verdict)
    hedged, asserted = (extract_answer(it) for it in (task, replace(task, answerability=judged())))
    first, rest = hedged.text.split("\n\n", 1)
    assert first == "This may not answer your question. The nearest text:"
    assert asserted.text.endswith(rest)
    assert not hedged.refused


def test_an_improbable_answer_has_two_quotes_at_most(passage, terms):
    texts = "Paid leave is 27 days long.", "Paid leave ends in March at last.", "Paid leave is granted by the lead."
    passages = [passage(number, text) for number, text in enumerate(texts, start=1)]
    task = task_of("paid leave", passages, terms(paid=3.0, leav=1.0))
    probable, improbable = (
        extract_answer(replace(task, answerability=replace(judged(Verdict.PARTIAL), confidence=it)))
        for it in (0.5, 0.49)
    )
    assert len(find_citations(probable.text, 3)) == 3
    assert len(find_citations(improbable.text, 3)) == 2
    assert probable.text.startswith(improbable.text)


@given(
    texts=st.lists(st.text(max_size=300), min_size=1, max_size=4),
    verdict=st.sampled_from([Verdict.ANSWERABLE, Verdict.PARTIAL]),
)
def test_several_quotes_fit_into_700_characters(texts, verdict):
    passages = [made(number, f"A zebra. {text}") for number, text in enumerate(texts, start=1)]
    answer = answer_to("zebra", passages, QueryTerms((Term("zebra", 1, 4.0),)), verdict=verdict)
    assert len(answer.text) <= 700 or len(answer.text.split("\n\n> ")) == 2


def test_it_refuses_without_passages(terms):
    answer = answer_to("Anything?", (), terms(anyth=5.0))
    assert answer.refused
    assert answer.citations == ()


def test_a_sentence_in_two_passages_is_quoted_once_with_both_numbers(passage, terms):
    text = "Flights need the approval of the director."
    answer = answer_to("flights?", (passage(1, text), passage(2, text, title="Copy")), terms(flight=4.0))
    assert answer.text.count(text) == 1
    assert "director. [1][2]" in answer.text


def test_neighbouring_sentences_become_one_quotation_in_reading_order(passage, terms):
    text = "The night shift starts at nine. The night shift ends at five. Lunch is at twelve."
    answer = answer_to("night shift?", (passage(1, text),), terms(night=3.0, shift=2.0))
    assert "> The night shift starts at nine. The night shift ends at five." in answer.text


def test_a_small_table_is_quoted_whole(passage, terms):
    text = "Occasion | Paid days\nAdoption of a child | 15\nWedding | 2"
    answer = answer_to("adoption?", (passage(1, text),), terms(adopt=4.0))
    rows = "> | Adoption of a child | 15 |\n> | Wedding | 2 |"
    assert f"> | Occasion | Paid days |\n> | --- | --- |\n{rows}\n\n[1]" in answer.text


@pytest.mark.parametrize(
    ("row", "header", "shown"),
    [
        ("Ann | 5", "", ["|  |  |", "| --- | --- |", "| Ann | 5 |"]),
        ("Port | 7 | 8", "| 2.8 | 3.0", ["| | 2.8 | 3.0 |", "| --- | --- | --- |", "| Port | 7 | 8 |"]),
    ],
)
def test_a_quoted_row_has_a_header_of_as_many_cells(row, header, shown):
    lines = Quote((Unit(UnitKind.ROW, row, 0, header=header),), (1,)).text.split("\n")
    assert [line.removeprefix("> ") for line in lines[:3]] == shown


def test_the_row_of_a_number_is_quoted_alone_under_its_header(passage, terms):
    rows = "Team lead | 1,000 euros\nSite manager | 10,000 euros\nDirector | 50,000 euros\nBoard | 250,000 euros"
    answer = answer_to("Who may sign 20,000 euros?", (passage(1, f"Role | Orders up to\n{rows}"),), terms(euro=2.0))
    table = "> | Role | Orders up to |\n> | --- | --- |\n> | Director | 50,000 euros |"
    assert answer.text == f"Quoted from your documents:\n\n{table}\n\n[1]"


def test_a_step_is_quoted_with_its_whole_list(passage, terms):
    text = (
        "To replace a probe:\n\n1. Fetch a calibrated probe.\n2. Hang it beside the old one.\n3. Send the old one back."
    )
    answer = answer_to("calibrated probe?", (passage(1, text),), terms(calibr=4.0, probe=2.0))
    assert (
        "> 1. Fetch a calibrated probe.\n> 2. Hang it beside the old one.\n> 3. Send the old one back. [1]"
        in answer.text
    )


def test_code_is_quoted_between_fences_with_the_sentence_that_announces_it(passage, terms):
    text = "To fail over, run:\n\nlarderctl db failover --to lar-db-2 --fence"
    answer = answer_to("fail over?", (passage(1, text),), terms(fail=4.0))
    assert "> To fail over, run:\n\n```\nlarderctl db failover --to lar-db-2 --fence\n```\n\n[1]" in answer.text


def test_a_bracketed_number_in_a_source_is_not_taken_for_a_citation(passage, terms):
    answer = answer_to("zebras?", (passage(1, "Zebras are striped [2]."), passage(2, "Horses.")), terms(zebra=4.0))
    assert "Zebras are striped \\[2]. [1]" in answer.text
    assert [citation.number for citation in answer.citations] == [1]


def test_code_that_holds_a_fence_cannot_close_its_own(passage, terms):
    text = "$ zebra ```\n$ echo [1]"
    answer = answer_to("zebra", (passage(1, text),), terms(zebra=4.0))
    assert f"````\n{text}\n````" in answer.text
    assert len(answer.citations) == 1


def test_a_question_in_the_text_is_no_answer_to_it(passage, terms):
    text = "How long is the parking free? Parking is free for four hours."
    answer = answer_to("how long is parking free", (passage(1, text),), terms(park=4.0, free=3.0, long=1.0))
    assert "> Parking is free for four hours. [1]" in answer.text


def test_a_likeness_in_meaning_comes_before_shared_words(passage, terms):
    passages = (passage(1, "The dock is closed at night."), passage(2, "Annual leave is twenty seven days each year."))
    query, found = "annual leave days each year", terms(closed=1.0)
    first = [answer_to(query, passages, found, encoder).citations[0].number for encoder in (None, HashEncoder())]
    assert first == [1, 2]


def test_words_decide_where_a_passage_has_no_vectors_yet(passage, terms):
    passages = (passage(1, "The dock is closed at night."), passage(2, "Annual leave is twenty seven days each year."))
    task = task_of("annual leave days each year", passages, terms(closed=1.0), encoder=HashEncoder())
    partly = replace(task, cosines={key: it for key, it in task.cosines.items() if key == passages[1].hit.chunk_id})
    answers = [extract_answer(it) for it in (task, partly, replace(task, cosines={}))]
    assert [answer.citations[0].number for answer in answers] == [2, 1, 1]


def test_what_is_far_behind_the_best_quote_comes_after_a_remark():
    texts = ("Leave is 27 days.", "Leave is granted by the lead.", "Leave the door open.")

    def quoted(*scores, characters=700):
        found = [candidates([made(at, text)], "", "english")[0] for at, text in enumerate(texts, start=1)]
        ranked = [Scored(candidate, {}, score) for candidate, score in zip(found, scores, strict=True)]
        return chosen_texts(ranked, (), max_characters=characters)

    first, second, third = quoted(5.0, 4.0, 3.0)
    assert (first, third) == ("> Leave is 27 days. [1]", "> Leave the door open. [3]")
    assert quoted(5.0, 4.0, 2.9) == (first, second, f"Also found:\n\n{third}")
    assert quoted(5.0, 2.9, 2.8) == (first, f"Also found:\n\n{second}", third)
    full = len(f"{first}\n\n{second}\n\n{third}")
    assert quoted(5.0, 4.0, 2.9, characters=full) == (first, second, third)


def test_a_row_that_a_number_picks_is_not_far_behind():
    table = made(1, "Role | Orders up to\nLead | 1,000 euros\nDirector | 50,000 euros\n\nTwo people sign.")
    sentence, row = candidates([table], "Who signs 20,000 euros?", "english")
    texts = chosen_texts([Scored(sentence, {}, 5.0), Scored(row, {}, 1.0)], (), max_characters=700)
    assert ["Director" in text for text in texts] == [False, True]
    assert not any("Also found" in text for text in texts)


def test_an_unfinished_line_is_only_quoted_if_it_is_the_best():
    (whole,), (part,) = (
        candidates([made(at, text)], "", "english") for at, text in ((1, "It is free."), (2, "Version B"))
    )

    def quoted(*ranked):
        return [quote.numbers for quote in choose(ranked, max_characters=700)]

    best, unfinished = Scored(whole, {}, 5.0), Scored(part, {}, 4.0)
    assert quoted(best, unfinished) == [(1,)]
    assert quoted(replace(unfinished, score=6.0), best) == [(2,), (1,)]


def test_length_costs_and_what_replaces_an_item_takes_its_place():
    """Of e times the length, half a point more is worth as much."""
    short, long, items = made(1, "Yes."), made(2, "A" * 400 + "."), made(3, f"- {'b' * 160}\n- {'c' * 160}")
    whole, first, _ = candidates([items], "", "english")

    def quoted(*scores, characters=440):
        ranked = [Scored(candidate, {}, score) for candidate, score in scores]
        found = choose(ranked, max_characters=characters)
        return [(quote.numbers[0], len(quote.units)) for quote in found]

    (yes,), (a,) = candidates([short], "", "english"), candidates([long], "", "english")
    cost = math.log(len(a.text) / len(yes.text)) / 2
    assert quoted((a, 5.0 + cost + 0.01), (yes, 5.0), characters=410) == [(2, 1)]
    assert quoted((a, 5.0 + cost - 0.01), (yes, 5.0), characters=410) == [(1, 1)]
    assert quoted((first, 5.0), (yes, 4.0), (whole, 3.9)) == [(3, 2), (1, 1)]
    assert quoted((a, 9.0), (yes, 2.9)) == [(2, 1)]  # Too far behind.
    assert quoted((a, 5.0), (yes, 4.0), characters=300) == [(1, 1)]
    assert quoted((a, 5.0), characters=300) == [(2, 1)]  # Nothing fits.


@pytest.mark.parametrize(("characters", "rows"), [(700, 3), (150, 1)])
def test_of_a_small_table_only_the_best_row_is_quoted_where_a_better_sentence_needs_the_place(characters, rows):
    table = "Service | Price\nLate arrival | 65.00\nRelabelling | 0.90\nParking | 12.00"
    whole, row, *_ = candidates([made(1, table)], "", "english")
    (sentence,) = candidates([made(2, "A driver who is more than 45 minutes late loses the slot.")], "", "english")
    ranked = [Scored(it, {}, score) for it, score in ((row, 5.0), (sentence, 4.0), (whole, 3.0))]
    table_quote, sentence_quote = choose(ranked, max_characters=characters)
    assert [unit.text for unit in table_quote.units] == table.splitlines()[1 : rows + 1]
    assert sentence_quote.units == sentence.quoted


def test_the_provider_yields_the_whole_answer_in_pieces(leave, terms):
    task = task_of("paid leave", leave, terms(paid=3.0, leav=1.0))
    pieces = read(ExtractiveProvider().stream(task))
    assert len(pieces) > 1
    assert "".join(piece.text for piece in pieces) == answer_to("paid leave", leave, task.terms).text


def test_closed_before_its_turn_it_does_no_work(leave, terms):
    threads, gate, begun = AnswerThreads(1), threading.Event(), []

    class Watched(tuple[object, ...]):
        __slots__ = ()

        def __iter__(self):
            begun.append(True)
            return super().__iter__()

    task = replace(task_of("paid leave", leave, terms(paid=3.0, leav=1.0)), passages=Watched(leave))

    async def leave_early():
        threads.submit(gate.wait)
        reading = asyncio.create_task(gather(ExtractiveProvider(threads).stream(task)))
        await asyncio.sleep(0.01)
        reading.cancel()
        await asyncio.wait({reading})
        gate.set()

    asyncio.run(leave_early())
    threads.shutdown()
    assert not begun


@given(text=st.text(max_size=120), title=st.text(max_size=20))
def test_any_text_gives_an_answer_whose_citations_are_passages(text, title):
    answer = answer_to("zebra", (made(1, f"a zebra {text}", title=title),), QueryTerms((Term("zebra", 1, 4.0),)))
    assert {citation.number for citation in answer.citations} == {1}


LIMITS = "| Role | Orders up to |\n| --- | --- |\n| Lead | 1,000 euros |\n| Director | 50,000 euros |"


@pytest.fixture
def signing(passage):
    text = "A manager signs orders up to 10,000 euros. Above that, Ines Solano signs with a second person."
    return (passage(1, text, title="Who may sign"), passage(2, LIMITS, title="Who may sign"))


def followed_up(first, question, passages, terms, encoder=None):
    """Return the answers to a question and to one that was made to stand alone after it."""
    before = answer_to(first, passages, terms, encoder)
    task = task_of(question, passages, terms, encoder=encoder)
    task = replace(task, history=(Turn(first, before.text),), is_follow_up=True)
    return before.text, extract_answer(task).text


@pytest.mark.parametrize("encoder", [None, HashEncoder()])
def test_a_follow_up_quotes_what_is_new_instead_of_the_answer_before_it(passage, terms, encoder):
    passages = (
        passage(1, "A manager orders up to 10,000 euros."),
        passage(2, "Orders are signed in the portal by Ines Solano."),
    )
    found = terms(order=2.0, manag=2.0, sign=1.0)
    assert "> A manager orders" in answer_to("Who signs it?", passages, found, encoder).text
    before = Turn(
        "What may a manager order?", "Quoted from your documents:\n\n> A manager orders up to 10,000 euros. [1]"
    )
    task = task_of("And who signs it?", passages, found, encoder=encoder)
    text = extract_answer(replace(task, history=(before,), is_follow_up=True)).text
    assert "> Orders are signed in the portal by Ines Solano. [2]" in text
    assert "10,000" not in text


def test_a_follow_up_about_something_else_leaves_out_the_answer_before_it(passage, terms):
    passages = (passage(1, "A day ticket for parking costs 12 francs."), passage(2, "Call 4711 for punctures."))
    found = terms(ticket=6.0, park=6.0, call=1.0, punctur=1.0)
    before, text = followed_up(
        "What does a day ticket for parking cost?", "And whom do I call for punctures?", passages, found
    )
    assert "12 francs" in before
    assert "> Call 4711 for punctures. [2]" in text
    assert "12 francs" not in text


def test_of_a_quoted_table_a_follow_up_gets_the_row_it_asks_for(passage, terms):
    found = terms(order=2.0, lead=2.0, director=1.0)
    before, text = followed_up("What may a lead order?", "And a director?", (passage(1, LIMITS),), found)
    assert "| Lead |" in before
    assert "| Director | 50,000 euros |" in text
    assert "| Lead |" not in text


def test_a_follow_up_quotes_the_same_again_if_there_is_nothing_else_or_nothing_new_in_it(passage, terms):
    found = terms(order=2.0, lead=2.0, portal=1.0)
    for question in ("And in the portal?", "Why?"):
        before, text = followed_up("What may a lead order?", question, (passage(1, LIMITS),), found)
        assert text == before


@pytest.mark.parametrize(
    ("question", "shows_more"),
    [("Tell me more", True), ("More details, please", True), ("Which document is it?", False)],
)
def test_what_only_asks_for_more_gets_what_the_answer_before_it_left_out(passage, terms, question, shows_more):
    text = "A manager orders paper up to 10,000 euros. " + "A manager orders paper for the office in spring. " * 12
    passages = (passage(1, text), passage(2, "Paper comes on Mondays."))
    before, more = followed_up("What may a manager order?", question, passages, terms(order=2.0, manag=2.0, paper=1.0))
    assert "> A manager orders paper up to" in before
    assert ("> A manager orders paper up to" not in more) == shows_more
    assert ("> Paper comes on Mondays. [2]" in more) == shows_more


def test_what_asks_for_more_of_nothing_is_refused(passage, terms):
    task = task_of("Tell me more", (passage(1, "---"),), terms(order=2.0))
    assert extract_answer(replace(task, history=(Turn("What may I order?", ""),), is_follow_up=True)).refused


def test_the_same_question_gets_the_same_answer(signing, terms):
    found = terms(order=2.0, manag=2.0)
    before = answer_to("What may a manager order?", signing, found).text
    task = replace(task_of("What may a manager order?", signing, found), history=(Turn("Hello", before),))
    assert extract_answer(task).text == before


@given(st.text(max_size=60), st.text(max_size=200), st.lists(st.text(min_size=1, max_size=120), min_size=1, max_size=4))
def test_a_follow_up_after_any_answer_quotes_something(question, answer, texts):
    passages = tuple(made(number, text) for number, text in enumerate(texts, start=1))
    task = replace(task_of("x", passages, QueryTerms()), history=(Turn(question, answer),), is_follow_up=True)
    plain = extract_answer(replace(task, is_follow_up=False))
    assert extract_answer(task).refused == plain.refused


ABBREVIATED = (
    "Urlaub verfällt, z. B. auch dann. Menschen mit Behinderung erhalten gem. § 208 Abs. 2 SGB IX fünf Tage mehr. Die"
    " Frist endet am 31. März des Folgejahres. Alles Weitere regelt die Betriebsvereinbarung."
)


@pytest.mark.parametrize(
    ("lexeme", "quoted"),
    [
        ("behinder", "Menschen mit Behinderung erhalten gem. § 208 Abs. 2 SGB IX fünf Tage mehr."),
        ("sgb", "Menschen mit Behinderung erhalten gem. § 208 Abs. 2 SGB IX fünf Tage mehr."),
        ("frist", "Die Frist endet am 31. März des Folgejahres."),
    ],
)
def test_a_sentence_with_abbreviations_is_quoted_whole(passage, lexeme, quoted):
    terms = QueryTerms((Term(lexeme, 1, 5.0),), language="german")
    assert f"> {quoted}" in answer_to("Und was?", (passage(1, ABBREVIATED),), terms).text


def test_a_sentence_with_a_day_behind_its_short_month_is_quoted_whole(passage):
    text = (
        "Our second title comes later. The first reading is on Wednesday, Dec. 11 in Redmond. Check here for details."
    )
    answer = answer_to("When is the reading?", (passage(1, text),), QueryTerms((Term("read", 1, 5.0),)))
    assert "> The first reading is on Wednesday, Dec. 11 in Redmond." in answer.text
