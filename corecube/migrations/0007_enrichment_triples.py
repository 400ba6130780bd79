from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('corecube', '0006_sign_in_and_forwarding'),
    ]

    operations = [
        migrations.AlterField(
            model_name='connection',
            name='enrichment',
            field=models.CharField(blank=True, choices=[('', 'Nothing'), ('context', 'A paragraph with context for the chunk'), ('questions', 'Questions that the chunk answers'), ('both', 'The paragraph and the questions'), ('triples', 'Relations: links between documents'), ('all', 'The paragraph, the questions and the links')], help_text='What a language model adds to the chunks after a sync. Requires an enrichment model.', max_length=20),
        ),
    ]
