"""What a token opens: the one check of its scope behind REST and the tools' sockets."""

from __future__ import annotations

from transcription.errors import MissingScopeError, NotAuthenticatedError
from webapp.accounts.models import ApiToken, Scope
from webapp.accounts.tokens import token_of_secret


def open_token(secret: str, scope: Scope) -> ApiToken:
    """The valid token with this secret, its `user` at hand.

    Raises NotAuthenticatedError, MissingScopeError.
    """
    token = token_of_secret(secret)
    if token is None:
        raise NotAuthenticatedError
    if not token.allows(scope):
        raise MissingScopeError(scope)
    return token
