"""Retrieving a context pack, as the API and programs in Python do it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from corecube.access import Principal, ScopeRequest
from corecube.sanitise import storable
from retrieval.engine.metadata_conditions import Condition, Conditions
from retrieval.engine.tunables import diff
from retrieval.presets.catalog import preset_named, version_of
from retrieval.presets.contextpack.config import ContextPackConfig
from retrieval.presets.contextpack.pack import ContextPack, context_pack_of
from retrieval.search.configuration import configuration_of
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

PRESET: Final = "contextpack"
_OTHER_NAMES: Final = {"doc_id": "document_id"}  #: Other names for facts in filters.

#: By the name of a fact, such as `document_id`, `title` or `connection`, or of a source's metadata: the value that
#: a document must have, or a list of which it must have one.
Filters = Mapping[str, str | UUID | Sequence[str | UUID]]


def retrieve(
    query: str,
    filters: Filters | None = None,
    config: ContextPackConfig | None = None,
    *,
    principal: Principal,
    narrowing: ScopeRequest | None = None,
) -> ContextPack:
    """Return the context pack for a query, from what `principal` may see and the filters allow.

    `config` replaces the live version's settings for this request; settings that cost time can only be lowered.
    Raises what `search` raises.
    """
    changes = diff(configuration_of(preset_named(PRESET)).config, config) if config else ()
    request = SearchRequest(
        text=query,
        preset=PRESET,
        narrowing=narrowing or ScopeRequest(),
        conditions=conditions_of(filters or {}),
        overrides={change.name: change.after for change in changes},
    )
    pack, _ = retrieved(request, principal=principal)
    return pack


def retrieved(
    request: SearchRequest, *, principal: Principal, top_k: int | None = None
) -> tuple[ContextPack, SearchOutcome]:
    """Return the pack for a request and its search; `top_k` defaults to the preset's.

    Raises InvalidRequestError for a preset that is no version of `contextpack`, and what `search` raises.
    """
    preset = version_of(PRESET, request.preset)
    outcome = search(replace(request, preset=preset.name, top_k=top_k), principal=principal)
    config = outcome.config
    assert isinstance(config, ContextPackConfig)  # noqa: S101 -- both presets have it
    context = config.context
    pack = context_pack_of(
        outcome.state, top=config.relevance.top, budget_tokens=context.budget_tokens, cite_ids=bool(context.cite_ids)
    )
    return pack, outcome


def conditions_of(filters: Filters) -> Conditions | None:
    """Return filters as conditions that a document must all meet; None for no filter."""
    each = []
    for given, value in filters.items():
        name = storable(_OTHER_NAMES.get(given, given))
        if isinstance(value, str | UUID):
            each.append(Condition((name,), "is", storable(str(value))))
        else:
            each.append(Condition((name,), "in", tuple(storable(str(it)) for it in value)))
    return Conditions(tuple(each)) if each else None
