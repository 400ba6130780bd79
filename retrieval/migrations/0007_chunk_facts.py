import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0006_embedding_indexes'),
    ]

    operations = [
        migrations.AddField(
            model_name='chunk',
            name='section_start',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='chunk',
            name='section_end',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='chunk',
            name='language',
            field=models.CharField(db_default='', default='', max_length=20),
        ),
        migrations.AddField(
            model_name='chunk',
            name='hints',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), db_default=[], default=list, size=None),
        ),
        migrations.AddField(
            model_name='chunk',
            name='minhash',
            field=models.BinaryField(db_default=b'', default=b''),
        ),
        migrations.AddField(
            model_name='chunk',
            name='context_line',
            field=models.TextField(db_default='', default=''),
        ),
        migrations.AddField(
            model_name='chunk',
            name='questions',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), db_default=[], default=list, size=None),
        ),
        migrations.AddField(
            model_name='document',
            name='raw_type',
            field=models.CharField(db_default='', default='', max_length=120),
        ),
    ]
