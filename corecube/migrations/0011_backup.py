from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('corecube', '0010_attached_files'),
    ]

    operations = [
        migrations.CreateModel(
            name='Backup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('place', models.TextField()),
                ('host', models.CharField(max_length=255)),
                ('started_at', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('name', models.CharField(default='', max_length=40)),
                ('problem', models.TextField(default='')),
                ('size', models.BigIntegerField(default=0)),
                ('added', models.BigIntegerField(default=0)),
            ],
            options={
                'ordering': ['-started_at'],
            },
        ),
    ]
