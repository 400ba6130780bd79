"""Queries that Django writes once find what there is at each asking."""

import json

import pytest

from retrieval.index.embedding_index import active_row
from retrieval.index.reading import CompiledQuery
from retrieval.models import EmbeddingIndex, PresetVersion


@pytest.mark.django_db
def test_it_finds_what_there_is_now():
    compiled = CompiledQuery(PresetVersion.objects.filter(preset="helix", number=3).values_list("number", "values"))
    assert compiled.first() is None
    PresetVersion.objects.create(preset="helix", number=3, values={"graph.hops": 2, "name": 'a "quoted" \\ one'})
    number, values = compiled.first()
    assert (number, json.loads(values)) == (3, {"graph.hops": 2, "name": 'a "quoted" \\ one'})
    PresetVersion.objects.all().delete()
    assert compiled.first() is None


@pytest.mark.django_db
def test_the_active_index_is_the_model_that_django_reads(world):
    read, known = active_row(), EmbeddingIndex.objects.get(status="active")
    assert read == known
    names = [field.attname for field in EmbeddingIndex._meta.concrete_fields]
    assert [getattr(read, name) for name in names] == [getattr(known, name) for name in names]
    assert not read._state.adding
    EmbeddingIndex.objects.all().delete()
    assert active_row() is None
