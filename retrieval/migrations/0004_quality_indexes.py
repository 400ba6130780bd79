from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0003_fulltext_bounds'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='chunk',
            name='chunk_by_connection',
        ),
        migrations.AddIndex(
            model_name='chunk',
            index=models.Index(fields=['connection_id', 'simhash'], include=('document_id', 'ordinal', 'token_count'), name='chunk_by_fingerprint'),
        ),
        migrations.AddIndex(
            model_name='chunk',
            index=models.Index(condition=models.Q(('quality__lt', 1.0)), fields=['connection_id', 'quality'], name='chunk_by_quality'),
        ),
    ]
