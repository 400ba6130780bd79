from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0015_helix'),
    ]

    operations = [
        migrations.CreateModel(
            name='ChunkLink',
            fields=[
                ('pk', models.CompositePrimaryKey('document_id', 'ordinal', 'kind', 'key', blank=True, editable=False, primary_key=True, serialize=False)),
                ('document_id', models.UUIDField()),
                ('ordinal', models.IntegerField()),
                ('connection_id', models.BigIntegerField()),
                ('kind', models.CharField(max_length=12)),
                ('key', models.BigIntegerField()),
                ('name', models.TextField()),
                ('sentence', models.TextField(blank=True)),
            ],
        ),
        migrations.AddField(
            model_name='chunk',
            name='links',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name='chunk',
            name='triples',
            field=models.JSONField(null=True),
        ),
    ]
