from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("retrieval", "0013_syncs_of_changes"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="connections",
            field=models.JSONField(null=True),
        ),
    ]
