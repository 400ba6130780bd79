"""The shape of the code: what may import what."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
APPS = ("corecube", "retrieval", "explorer")
PURE = (
    "retrieval.index.bm25.folder",
    "retrieval.index.bm25.question",
    "retrieval.index.bm25.reader",
    "retrieval.index.bm25.schema",
    "retrieval.index.bm25.spelling",
    "retrieval.index.bm25.stop_words",
    "retrieval.index.chunk_texts",
    "retrieval.index.bm25.writer",
    "corecube.oidc.claims",
    "corecube.oidc.tokens",
    "corecube.scope",
    "retrieval.engine.admission",
    "retrieval.ranking.answerability.signals",
    "retrieval.ranking.answerability.verdict",
    "retrieval.text.boilerplate",
    "retrieval.ranking.comparison",
    "retrieval.engine.config",
    "retrieval.text.context_line",
    "retrieval.presets.contextpack.batches",
    "retrieval.presets.contextpack.building",
    "retrieval.presets.contextpack.citations",
    "retrieval.presets.contextpack.judge",
    "retrieval.presets.contextpack.judgment_cache",
    "retrieval.presets.contextpack.packing",
    "retrieval.presets.contextpack.rubric",
    "retrieval.presets.contextpack.verdicts",
    "retrieval.engine.deadline",
    "retrieval.ranking.diversity",
    "retrieval.encoders.breaker",
    "retrieval.encoders.late_interaction",
    "retrieval.encoders.rerank_services",
    "retrieval.encoders.sparse",
    "retrieval.encoders.token_vectors",
    "retrieval.evaluation.answerability_figures",
    "retrieval.evaluation.calibration",
    "retrieval.evaluation.ordering",
    "retrieval.presets.consolidated.evidence.cascade",
    "retrieval.presets.consolidated.evidence.cells",
    "retrieval.presets.consolidated.evidence.config",
    "retrieval.presets.consolidated.evidence.density",
    "retrieval.presets.consolidated.evidence.depth",
    "retrieval.presets.consolidated.evidence.fairness",
    "retrieval.presets.consolidated.evidence.floors",
    "retrieval.presets.consolidated.evidence.fusion",
    "retrieval.presets.consolidated.evidence.grades",
    "retrieval.engine.admission_ladder",
    "retrieval.presets.consolidated.evidence.precedence",
    "retrieval.presets.consolidated.evidence.protection",
    "retrieval.presets.consolidated.evidence.quota",
    "retrieval.presets.consolidated.evidence.recovery",
    "retrieval.presets.consolidated.evidence.rerank_plan",
    "retrieval.presets.consolidated.evidence.section_reading",
    "retrieval.presets.consolidated.evidence.section_set",
    "retrieval.presets.consolidated.evidence.sections",
    "retrieval.presets.consolidated.evidence.semantic_bm25",
    "retrieval.presets.consolidated.evidence.timing",
    "retrieval.ranking.fusion",
    "retrieval.llm.background",
    "retrieval.llm.citations",
    "retrieval.answers.claims",
    "retrieval.llm.draft",
    "retrieval.answers.events",
    "retrieval.answers.faithfulness",
    "retrieval.answers.figures",
    "retrieval.text.json_text",
    "retrieval.text.markers",
    "retrieval.llm.neutral",
    "retrieval.llm.prompt",
    "retrieval.llm.routing",
    "retrieval.llm.service",
    "retrieval.llm.heartbeats",
    "retrieval.presets.helix.expansion",
    "retrieval.graph.names",
    "retrieval.graph.question",
    "retrieval.ingest.chunk.parents",
    "retrieval.ingest.enrich.cost",
    "retrieval.ingest.enrich.prompts",
    "retrieval.text.hints",
    "retrieval.text.language",
    "retrieval.text.traits",
    "retrieval.answers.followup_words",
    "retrieval.answers.rewrite",
    "retrieval.index.lexemes",
    "retrieval.index.reach",
    "retrieval.records.lifeline.walk",
    "retrieval.ranking.measures",
    "retrieval.answers.memory.turns",
    "retrieval.presets.helix.memory_types",
    "retrieval.engine.metadata_conditions",
    "retrieval.text.minhash",
    "retrieval.ranking.mmr",
    "retrieval.ranking.near_duplicates",
    "retrieval.ranking.packing",
    "retrieval.engine.pipeline",
    "retrieval.engine.query",
    "retrieval.text.quality",
    "retrieval.ranking.blend",
    "retrieval.presets.helix.router.projects",
    "retrieval.presets.helix.router.routes",
    "retrieval.presets.helix.router.windows",
    "retrieval.ranking.signals",
    "retrieval.text.simhash",
    "retrieval.engine.slots",
    "retrieval.engine.state",
    "retrieval.records.stored_trace",
    "retrieval.engine.tunables",
    "retrieval.engine.types",
)


def modules(app):
    for path in sorted((ROOT / app).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


PATHS = {name: path for app in APPS for name, path in modules(app)}


def imports(name):
    """Yield every module that a module imports, as written, wherever the import stands."""
    for node in ast.walk(ast.parse(PATHS[name].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{name} has a relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(("app", "above"), [("corecube", {"retrieval", "explorer"}), ("retrieval", {"explorer"})])
def test_imports_follow_the_arrow(app, above):
    backwards = [(name, it) for name, _ in modules(app) for it in imports(name) if it.split(".")[0] in above]
    assert backwards == []


def reachable(name):
    """Return every module that importing this one brings in, ours followed, others named."""
    found, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        if current in found:
            continue
        found.add(current)
        if current in PATHS:
            waiting += [it for it in imports(current) if it in PATHS or it.split(".")[0] not in APPS]
    return found


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_reach_no_django(name):
    assert not {it for it in reachable(name) if it.split(".")[0] == "django"}


def test_only_the_index_package_speaks_sql_to_the_search_tables():
    speakers = {
        name
        for name in PATHS
        if name.startswith(("retrieval", "explorer"))
        and any(it in {"django.db.connection", "django.db.connections"} for it in imports(name))
    }
    allowed = ("retrieval.index.", "retrieval.evaluation.bench", "retrieval.migrations.")
    assert {name for name in speakers if not name.startswith(allowed)} <= {
        "retrieval.ingest.index_tasks",
        "retrieval.ingest.tasks",
        "retrieval.search.runtime",
        "retrieval.ingest.lock",
        "retrieval.ingest.sync",
        "retrieval.ingest.watchdog",
        "retrieval.tasks.worker",
    }


def test_search_statements_are_limited_to_a_scope():
    folder = ROOT / "retrieval" / "index" / "sql"
    legs = ("analyze", "dense_hnsw", "dense_exact", "fulltext", "fulltext_capped", "complete")
    legs = (*legs, "dense_int8", "dense_binary", "dense_prefix", "sparse_exact", "sparse_hnsw", "pool_tokens")
    for name in (*legs, "neighbours", "probe", "place_dense", "place_fulltext"):
        assert "ANY(%(scope)s)" in (folder / f"{name}.sql").read_text()
