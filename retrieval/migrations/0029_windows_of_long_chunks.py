from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0028_limits_of_requests'),
    ]

    operations = [
        migrations.AddField(
            model_name='embeddingindex',
            name='pools_windows',
            field=models.BooleanField(db_default=False, default=True),
        ),
    ]
