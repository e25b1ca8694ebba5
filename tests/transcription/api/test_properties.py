"""REST v1 against its own description: whatever is sent, the answer is one that was declared.

`tests/load/rest_properties.py` is the same at length, by a server of its own.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, checks, openapi
from schemathesis.python.asgi import get_client

from tests.fakes.live import final, make_session
from tests.fakes.recordings import claim_of, make_job, make_recording, make_upload, progress
from transcription.models import GlossaryTerm, RetentionPolicy
from transcription.services import jobs, live_sessions, rate_limits
from webapp.accounts.models import ApiToken, Team, User
from webapp.asgi import application

EXAMPLES: Final = 3
"""Of each operation."""
CHECKS: Final = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def things(administrator: User, alice: User, sent: list[tuple[str, ...]]) -> dict[str, Any]:
    """Real keys for the parameters of addresses, by their names."""
    job = make_job(administrator)
    claim = claim_of()
    jobs.store_progress(claim=claim, progress=progress("one", "two"))
    session = make_session(administrator)
    live_sessions.record_final(event=final(session, 0, "said"))
    live_sessions.end_live_session(session=session)
    team = Team.objects.create(name="Sales")
    return {
        "recording_id": str(make_recording(administrator).id),
        "number": 1,
        "extension": "txt",
        "job_id": str(job.id),
        "session_id": str(session.id),
        "upload_id": str(make_upload(administrator).id),
        "term_id": GlossaryTerm.objects.create(phrase="Ada").pk,
        "user_id": alice.pk,
        "team_id": team.pk,
        "policy_id": RetentionPolicy.objects.create().pk,
    }


@schemathesis.serializer("application/offset+octet-stream")
def as_bytes(ctx: schemathesis.SerializationContext, value: Any) -> Any:
    """A piece of an upload is its bytes."""
    return value if isinstance(value, bytes) else str(value).encode()


def test_every_answer_is_as_declared(
    administrator: User, things: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "_most", lambda kind: 10**6)
    _, secret = ApiToken.issue(user=administrator, name="tool")
    headers = {"Authorization": f"Bearer {secret}"}
    schema = openapi.from_asgi("/api/v1/openapi.json", application)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 50
    with get_client(application, max_stream_events=3) as session:
        for operation in operations:

            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy())
            def answers(case: Case) -> None:
                asked = case.path_parameters or {}
                real = {name: things[name] for name in asked if name in things}
                case.path_parameters = {**asked, **real}
                case.call_and_validate(session=session, headers=headers, checks=CHECKS)

            answers()
