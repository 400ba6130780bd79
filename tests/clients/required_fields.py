"""Sends only the required fields of a request of each schema, in the types that datamodel-code-generator writes."""

import os
import sys
from typing import TypeVar

import api
import dify
import httpx
import v1
import v2
from pydantic import BaseModel

QUESTION = "How many days of annual leave do I get?"
DOCUMENTS = ["Visitors wear a badge.", "Annual leave is 27 days."]
Received = TypeVar("Received", bound=BaseModel)


def post(path: str, body: BaseModel, received: type[Received]) -> Received:
    response = httpx.post(
        os.environ["CORECUBE_URL"] + path,
        headers={"Authorization": "Bearer " + os.environ["CORECUBE_KEY"], "Content-Type": "application/json"},
        content=body.model_dump_json(exclude_unset=True),
        timeout=60,
    ).raise_for_status()
    return received.model_validate_json(response.content)


found = post("/api/v1/search", api.SearchIn(query=QUESTION), api.SearchOut)
asked = v1.ChatIn(model="corecube", messages=[v1.MessageIn(role="user", content=QUESTION)])
chat = post("/v1/chat/completions", asked, v1.CompletionOut)
response = post("/v1/responses", v1.ResponseIn(model="corecube", input=QUESTION), v1.ResponseOut)
ranked = post("/v2/rerank", v2.RerankIn(query=QUESTION, documents=[*DOCUMENTS]), v2.RerankOut)
retrieved = post("/api/dify/retrieval", dify.RetrievalIn(knowledge_id="all", query=QUESTION), dify.RetrievalOut)
sys.stdout.write(
    f"/api {found.hits[0].title}\n"
    f"/v1 {chat.choices[0].message.annotations[0].url_citation.title}\n"
    f"/v1 {response.status}\n"
    f"/v2 {DOCUMENTS[ranked.results[0].index]}\n"
    f"/api/dify {retrieved.records[0].title}\n"
)
