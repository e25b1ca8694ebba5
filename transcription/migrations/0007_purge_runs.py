import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    # No purge has run yet: the table is made anew, since its key becomes a number that rises.

    dependencies = [
        ("transcription", "0006_webhook_secrets_and_references"),
    ]

    operations = [
        migrations.DeleteModel(name="PurgeRun"),
        migrations.CreateModel(
            name="PurgeRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("is_open", models.BooleanField(default=True)),
                ("lease_expires_at", models.DateTimeField(blank=True, null=True)),
                ("fence", models.PositiveIntegerField(default=1)),
                ("counts", models.JSONField(blank=True, default=dict)),
                ("problem", models.CharField(blank=True, max_length=300)),
            ],
            options={
                "ordering": ("-id",),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_open", True)),
                        fields=("is_open",),
                        name="one_open_purge",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Remains",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "verbose_name_plural": "remains",
                "ordering": ("created_at",),
            },
        ),
    ]
