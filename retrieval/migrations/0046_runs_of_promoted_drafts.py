from django.db import migrations
from django.db.models import Exists, OuterRef


def name_by_version(apps, schema_editor):
    """Let the runs of a draft that was promoted with their numbers count as runs of its version."""
    promoted = apps.get_model('retrieval', 'PresetVersion').objects.exclude(status='draft')
    version = promoted.filter(preset=OuterRef('preset'), number=OuterRef('version'), values=OuterRef('values'))
    apps.get_model('retrieval', 'EvaluationRun').objects.filter(Exists(version), is_draft=True).update(is_draft=False)


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0045_evidence_channel'),
    ]

    operations = [
        migrations.RunPython(name_by_version, migrations.RunPython.noop),
    ]
