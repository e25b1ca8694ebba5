"""Addresses are looked up in small letters: whoever was invited in capitals could not log in."""

from django.db import migrations


def write_small(apps, schema_editor):
    users = apps.get_model("accounts", "User").objects
    for user in users.all().iterator():
        small = user.email.lower()
        if small != user.email and not users.filter(email=small).exists():
            users.filter(pk=user.pk).update(email=small)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0005_engine_orders'),
    ]

    operations = [
        migrations.RunPython(write_small, migrations.RunPython.noop),
    ]
