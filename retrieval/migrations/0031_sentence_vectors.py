from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0030_compressed_token_vectors'),
    ]

    operations = [
        migrations.CreateModel(
            name='SentenceEmbedding',
            fields=[
                ('document_id', models.UUIDField()),
                ('ordinal', models.IntegerField()),
                ('connection_id', models.BigIntegerField()),
                ('pk', models.CompositePrimaryKey('document_id', 'ordinal', blank=True, editable=False, primary_key=True, serialize=False)),
                ('model_key', models.BigIntegerField()),
                ('vectors', models.BinaryField()),
            ],
            options={
                'indexes': [models.Index(fields=['connection_id', 'model_key'], name='sentences_by_connection')],
            },
        ),
        # They are almost random bits: unpacking would take longer than reading what packing saves.
        migrations.RunSQL(
            "ALTER TABLE retrieval_sentenceembedding ALTER COLUMN vectors SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
    ]
