from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0029_windows_of_long_chunks'),
    ]

    operations = [
        # Uncompressed vectors cannot be read any more; the next sync or `manage.py encodings build` makes them again.
        migrations.RunSQL("TRUNCATE retrieval_tokenembedding", migrations.RunSQL.noop),
        migrations.RemoveField(model_name='tokenembedding', name='scales'),
        migrations.RemoveField(model_name='tokenembedding', name='steps'),
        migrations.AddField(
            model_name='tokenembedding',
            name='vectors',
            field=models.BinaryField(default=b''),
            preserve_default=False,
        ),
        # They are almost random bits: unpacking would take longer than reading what packing saves.
        migrations.RunSQL(
            "ALTER TABLE retrieval_tokenembedding ALTER COLUMN vectors SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
    ]
