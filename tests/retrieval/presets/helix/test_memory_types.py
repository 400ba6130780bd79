from dataclasses import replace

import pytest

from retrieval.engine.types import MemoryType
from retrieval.presets.helix.stages.signals import memory_type_of, prevailing
from tests.retrieval.conftest import hit

CHUNK = hit(1).chunk


@pytest.mark.parametrize(
    ("facts", "memory_type"),
    [
        ({"title": "Salary bands 2026"}, "semantic"),
        ({"title": "ADR-0014: Readings stay in PostgreSQL"}, "decision"),
        ({"title": "Notes", "uri": "https://git.example/docs/decisions/0014-readings.md"}, "decision"),
        ({"title": "Runbook for a full disk"}, "procedural"),
        ({"title": "How to apply for leave"}, "procedural"),
        ({"title": "INC-2026-007: ammonia release"}, "episodic"),
        ({"title": "Operations weekly", "uri": "/minutes/2026-11-12.md"}, "episodic"),
        ({"title": "Re: delivery", "source_type": "email"}, "episodic"),
        ({"title": "billing.py", "source_type": "code"}, "code"),
        ({"title": "Larder failover", "heading_path": ("Runbook", "Steps")}, "procedural"),
        ({"title": "Guidelines on gifts"}, "semantic"),
        ({"title": "Adrian and the decisive moment"}, "semantic"),
        ({"title": "x", "uri": "https://meetings.example/rates"}, "semantic"),
        ({"title": "ADR-1", "memory_kind": "code"}, "code"),
        ({"title": "ADR-1", "memory_kind": "unheard of"}, "decision"),
    ],
)
def test_a_document_is_what_it_was_remembered_as_or_calls_itself(facts, memory_type):
    assert memory_type_of(replace(CHUNK, **facts)) is MemoryType(memory_type)


def test_a_connections_name_tells_where_the_document_does_not():
    assert memory_type_of(CHUNK, connection="Runbooks") is MemoryType.PROCEDURAL
    assert memory_type_of(replace(CHUNK, title="Incident 7"), connection="Runbooks") is MemoryType.EPISODIC


@pytest.mark.parametrize(
    ("found", "type_"),
    [
        ([("code", 0.6), ("semantic", 0.4)], "code"),
        ([("code", 0.5), ("semantic", 0.5)], None),
        ([("code", 0.3), ("semantic", 0.4), ("code", 0.3)], "code"),
        ([("code", 0.0)], None),
        ([], None),
    ],
)
def test_a_type_prevails_by_its_share(found, type_):
    assert prevailing([(MemoryType(it), weight) for it, weight in found], min_share=0.6) == type_
