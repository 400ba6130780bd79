from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('corecube', '0006_sign_in_and_forwarding'),
    ]

    operations = [
        migrations.AlterField(
            model_name='connection',
            name='enrichment',
            field=models.CharField(blank=True, choices=[('', 'Nothing'), ('context', 'A paragraph that says where the chunk stands'), ('questions', 'Questions that the chunk answers'), ('both', 'The paragraph and the questions'), ('triples', 'Who relates to whom: links between documents'), ('all', 'The paragraph, the questions and the links')], help_text='What a model adds to the chunks after a sync; one has to be configured.', max_length=20),
        ),
    ]
