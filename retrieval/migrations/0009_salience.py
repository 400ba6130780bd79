from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):

    dependencies = [
        ("retrieval", "0008_search_log_and_judgments"),
    ]

    operations = [
        migrations.AddField(
            model_name="chunk",
            name="salience",
            field=models.FloatField(null=True),
        ),
        migrations.AddIndex(
            model_name="chunk",
            index=models.Index(
                condition=Q(("salience__isnull", True)),
                fields=["connection_id", "document_id"],
                name="chunk_without_salience",
            ),
        ),
    ]
