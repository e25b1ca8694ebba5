from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("transcription", "0005_rights_and_tools"),
    ]

    operations = [
        migrations.AddField(
            model_name="livesession",
            name="reference",
            field=models.CharField(
                blank=True,
                help_text="What the tool that made it calls it: a call's id.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="webhook",
            name="previous_secret",
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name="webhook",
            name="previous_secret_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
