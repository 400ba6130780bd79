from dataclasses import replace

from corecube.scope import TrustLevel
from retrieval.stages.ties import BreakTies, TieConfig
from tests.retrieval.conftest import chunk_id, connection, hit, scope


def test_trust_comes_from_the_scope_and_decides_only_near_ties(state):
    sources = scope(connection(1, trust=TrustLevel.VOLATILE), connection(2, trust=TrustLevel.AUTHORITATIVE))
    hits = (hit(1, 0.80, connection_id=1), hit(2, 0.795, connection_id=2), hit(3, 0.70, connection_id=2))
    after = BreakTies(TieConfig(tolerance=0.01))(replace(state, scope=sources, hits=hits))
    assert [it.chunk_id for it in after.hits] == [chunk_id(2), chunk_id(1), chunk_id(3)]
    assert BreakTies(TieConfig(tolerance=0.0))(replace(state, scope=sources, hits=hits)).hits == hits
