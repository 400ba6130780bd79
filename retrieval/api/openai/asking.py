"""From a request to a finished search, which the answer of every format begins with."""

import time
from collections.abc import Sequence

from django.http import HttpRequest

from corecube.api import principal_of
from retrieval.answers.answering import prepare
from retrieval.answers.conversations.reading import Exchange, earlier_questions, turns_of
from retrieval.answers.model_rewrite import follow_up
from retrieval.answers.rewrite import Rewriting, Said
from retrieval.api.openai import chat_request
from retrieval.api.openai.answer import Chat, Json
from retrieval.api.search import explanation_for
from retrieval.api.shape import search_out
from retrieval.search.live import live_search
from retrieval.search.outcome import SearchOutcome


def asked(request: HttpRequest, body: chat_request.ChatIn, before: Sequence[Exchange] = ()) -> tuple[Chat, Rewriting]:
    """Search for the last question of a request, after the exchanges of a stored conversation and its own messages.

    Raises as `search_request` and `search` do.
    """
    principal = principal_of(request)
    options, wanted = chat_request.options_of(body), chat_request.search_request(body, principal)
    given = chat_request.history_of(body.messages)
    turns = (*turns_of(before), *given)
    said = (*earlier_questions(before), *(Said(turn.question, answer=turn.answer) for turn in given))
    rewriting = follow_up(principal, wanted.text, said, turns)
    outcome = live_search(chat_request.rewritten(wanted, rewriting), principal=principal, through_api=True)
    history = tuple(it for it in turns if it.answer)
    chat = Chat(
        answering=prepare(outcome, principal, history, question=wanted.text, options=options),
        ignored=chat_request.ignored_parameters(body),
        absolute=request.build_absolute_uri,
        created=int(time.time()),
        explained=_explained(request, outcome) if body.corecube.explain else None,
    )
    return chat, rewriting


def _explained(request: HttpRequest, outcome: SearchOutcome) -> Json:
    explanation = explanation_for(principal_of(request), outcome)
    found = search_out(outcome, request.build_absolute_uri, explanation)
    return found.model_dump(mode="json", exclude_unset=True)
