"""Settings of presets have `max_` and `min_` in their names: versions stored before take the new names."""

from django.db import migrations

_NAMES = {
    "depth.least": "depth.minimum",
    "diversify.least_cosine": "diversify.min_cosine",
    "pack.most_passages": "pack.max_passages",
    "precedence.most": "precedence.limit",
    "precedence.smallest_margin": "precedence.min_margin",
    "quality.least": "quality.minimum",
}
_LEAVES = {
    "least_budget_ms": "min_budget_ms",
    "least_cosine_span": "min_cosine_span",
    "least_primary": "min_primary",
    "least_score": "min_score",
    "least_similarity": "min_similarity",
    "least_span": "min_span",
    "least_spans": "min_spans",
    "least_tokens": "min_tokens",
    "longest_wait_seconds": "max_wait_seconds",
    "most_edges": "max_edges",
    "most_mass": "max_mass",
    "most_matches": "max_matches",
    "most_protected": "max_protected",
    "most_share": "max_share",
    "structure_least": "structure_minimum",
}


def _new_name(name):
    section, point, leaf = name.rpartition(".")
    return _NAMES.get(name, f"{section}{point}{_LEAVES.get(leaf, leaf)}")


def rename(apps, schema_editor):
    """Give the stored values of every preset version their present names."""
    for version in apps.get_model("retrieval", "PresetVersion").objects.exclude(values={}):
        version.values = {_new_name(name): value for name, value in version.values.items()}
        version.save(update_fields=["values"])


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0025_language_model_status")]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
