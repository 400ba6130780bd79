from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("retrieval", "0012_agents"),
    ]

    operations = [
        migrations.AlterField(
            model_name="sync",
            name="kind",
            field=models.CharField(
                choices=[("full", "Full"), ("changes", "Changes"), ("retry", "Retry"), ("dry_run", "Dry Run")],
                db_default="full",
                default="full",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="sync",
            name="settings_mark",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
    ]
