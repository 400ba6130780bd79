from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('corecube', '0012_key_use'),
    ]

    operations = [
        migrations.AlterField(
            model_name='connection',
            name='language',
            field=models.CharField(blank=True, choices=[('', 'Automatic'), ('simple', 'Any (no stemming)'), ('arabic', 'Arabic'), ('armenian', 'Armenian'), ('basque', 'Basque'), ('catalan', 'Catalan'), ('danish', 'Danish'), ('dutch', 'Dutch'), ('english', 'English'), ('finnish', 'Finnish'), ('french', 'French'), ('german', 'German'), ('greek', 'Greek'), ('hindi', 'Hindi'), ('hungarian', 'Hungarian'), ('indonesian', 'Indonesian'), ('irish', 'Irish'), ('italian', 'Italian'), ('lithuanian', 'Lithuanian'), ('nepali', 'Nepali'), ('norwegian', 'Norwegian'), ('portuguese', 'Portuguese'), ('romanian', 'Romanian'), ('russian', 'Russian'), ('serbian', 'Serbian'), ('spanish', 'Spanish'), ('swedish', 'Swedish'), ('tamil', 'Tamil'), ('turkish', 'Turkish'), ('yiddish', 'Yiddish')], help_text='Decides how words are stemmed for full-text search. Automatic: the first sync chooses it. A change takes effect with the next sync.', max_length=20),
        ),
    ]
