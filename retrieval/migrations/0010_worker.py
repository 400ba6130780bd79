from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("retrieval", "0009_salience"),
    ]

    operations = [
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("host", models.CharField(max_length=255)),
                ("pid", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["host", "pid"],
                "constraints": [models.UniqueConstraint(fields=("host", "pid"), name="one_row_per_worker")],
            },
        ),
    ]
