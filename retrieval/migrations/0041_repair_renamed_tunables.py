"""0026 put a point before settings without a section, such as `.deadline_ms`: versions that it changed lose it."""

from django.db import migrations


def repair(apps, schema_editor):
    """Give the stored values of every preset version their present names."""
    for version in apps.get_model("retrieval", "PresetVersion").objects.exclude(values={}):
        repaired = {name.removeprefix("."): value for name, value in version.values.items()}
        if repaired != version.values:
            version.values = repaired
            version.save(update_fields=["values"])


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0040_use_of_passages")]

    operations = [migrations.RunPython(repair, migrations.RunPython.noop)]
