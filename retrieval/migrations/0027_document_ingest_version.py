"""Documents record the version of parsing and chunking that made their chunks."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0026_rename_tunables")]

    operations = [
        migrations.AddField(
            model_name="document",
            name="ingest_version",
            field=models.SmallIntegerField(db_default=0, default=0),
        ),
    ]
