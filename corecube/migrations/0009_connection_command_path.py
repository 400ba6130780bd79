from datetime import timedelta

from django.db import migrations, models

#: An event and the row that it tells of are written together.
_TOGETHER = timedelta(minutes=1)
#: Changes after which nobody knows whether a command chose the path.
_TELLING = {"config", "config.path", "kind", "slug"}


def mark_commands(apps, schema_editor):
    """Let the folders stay open that a command made: the console, the API and /admin/ wrote an audit event."""
    connections = apps.get_model("corecube", "Connection").objects.filter(kind="folder")
    events = apps.get_model("corecube", "AuditEvent").objects
    for connection in connections:
        path = connection.config.get("path") if isinstance(connection.config, dict) else None
        told = events.filter(
            subject=connection.slug,
            action__in=("connection.created", "connection.changed"),
            at__gte=connection.created_at - _TOGETHER,
        )
        if isinstance(path, str) and not any(map(_tells_of_people, told)):
            connection.command_path = path
            connection.save(update_fields=["command_path"])


def _tells_of_people(event):
    return event.action == "connection.created" or not _TELLING.isdisjoint(event.details.get("changed", ()))


class Migration(migrations.Migration):

    dependencies = [
        ('corecube', '0008_sign_in_pace'),
    ]

    operations = [
        migrations.AddField(
            model_name='connection',
            name='command_path',
            field=models.TextField(blank=True, default='', editable=False),
        ),
        migrations.RunPython(mark_commands, migrations.RunPython.noop),
    ]
