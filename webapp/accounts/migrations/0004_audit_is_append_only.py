"""The database itself refuses to change an entry of the audit log."""

from django.db import migrations

SQLITE = """
CREATE TRIGGER accounts_auditentry_append_only BEFORE UPDATE ON accounts_auditentry
BEGIN SELECT RAISE(ABORT, 'an audit entry is never changed'); END
"""
POSTGRESQL = """
CREATE FUNCTION accounts_auditentry_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'an audit entry is never changed' USING ERRCODE = 'check_violation'; END $$;
CREATE TRIGGER accounts_auditentry_append_only BEFORE UPDATE ON accounts_auditentry
FOR EACH ROW EXECUTE FUNCTION accounts_auditentry_refuse_change()
"""


def refuse_changes(apps, schema_editor):
    """A migration that has SQLite make the table anew must call this again."""
    is_postgresql = schema_editor.connection.vendor == 'postgresql'
    schema_editor.execute(POSTGRESQL if is_postgresql else SQLITE)


def allow_changes(apps, schema_editor):
    if schema_editor.connection.vendor == 'postgresql':
        schema_editor.execute(
            'DROP TRIGGER accounts_auditentry_append_only ON accounts_auditentry;'
            'DROP FUNCTION accounts_auditentry_refuse_change()'
        )
    else:
        schema_editor.execute('DROP TRIGGER accounts_auditentry_append_only')


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_sessions'),
    ]

    operations = [
        migrations.RunPython(refuse_changes, allow_changes),
    ]
