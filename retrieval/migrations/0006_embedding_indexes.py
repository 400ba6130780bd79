from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0005_ingest_jobs'),
    ]

    operations = [
        migrations.AddField(
            model_name='embeddingindex',
            name='source',
            field=models.CharField(blank=True, default='', max_length=200),
        ),
        migrations.AddField(
            model_name='embeddingindex',
            name='mode',
            field=models.CharField(choices=[('chunk_first', 'Chunk First'), ('late', 'Late')], default='chunk_first', max_length=12),
        ),
        migrations.AddField(
            model_name='embeddingindex',
            name='ready_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='embeddingindex',
            name='switched_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='embeddingindex',
            name='built',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='embeddingindex',
            name='build_seconds',
            field=models.FloatField(default=0.0),
        ),
        migrations.AddField(
            model_name='embeddingindex',
            name='heartbeat_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='embeddingindex',
            name='problem',
            field=models.TextField(blank=True, default=''),
        ),
        migrations.AlterField(
            model_name='embeddingindex',
            name='status',
            field=models.CharField(choices=[('building', 'Building'), ('active', 'Active'), ('previous', 'Previous')], default='building', max_length=10),
        ),
        # So far every index was made from the configured folder, and syncs kept it complete.
        migrations.RunSQL(
            "UPDATE retrieval_embeddingindex SET ready_at = now() WHERE status = 'active'",
            migrations.RunSQL.noop,
        ),
        migrations.AddConstraint(
            model_name='embeddingindex',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'building')), fields=('status',), name='one_building_embedding_index'),
        ),
    ]
