"""Every error that the product raises on purpose.

    ProductError
    ├── NotAuthenticatedError    nobody is logged in, or the token is not (or no longer) known
    ├── ForbiddenError           the request did not come from our own page
    │   └── MissingScopeError        the token is good, but not for this
    ├── NotFoundError            absent, or not this person's to see: both look the same
    │   └── UnknownLinkError         a link to captions that nobody made
    ├── ConflictError            the thing is in a state that does not allow this
    │   ├── InUseError               another page captures this session
    │   ├── SessionEndedError        the live session takes no more audio
    │   ├── UploadBusyError          another request writes to this upload at this moment
    │   ├── StaleOffsetError         an upload goes on elsewhere than asked
    │   └── StillAnsweringError      the same request came before, and is not answered yet
    ├── ChangedMeanwhileError    the thing is not what the request takes it for
    ├── InvalidInputError        the request itself is wrong
    │   └── KeyReusedError           an Idempotency-Key that came with another request before
    ├── TooLargeError            above a limit
    │   └── OverQuotaError           more than this person may keep here
    ├── TooFastError             more at once than the server takes
    │   └── TooManyUploadsError      as many unfinished uploads as a person may have
    ├── TryLaterError            cannot be done now; nothing was lost
    │   ├── TooManySessionsError     as many live sessions as there may be
    │   └── TooManyViewersError      as many readers as there may be
    ├── NoSpaceError             the disk is full
    └── LeaseLostError           a worker no longer holds the job that it works on

`code` is stable and part of the API; `status` is the HTTP status; `sentence` is for people.
"""

from __future__ import annotations

from typing import ClassVar, Self


class ProductError(Exception):
    """Base of the tree."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    is_retryable: ClassVar[bool] = False
    sentence: ClassVar[str] = "Something went wrong on the server."

    def __init__(self, sentence: str = "") -> None:
        super().__init__(sentence or self.sentence)
        self.text = sentence or self.sentence


class NotAuthenticatedError(ProductError):
    code = "not_authenticated"
    status = 401
    sentence = "Log in first, or send a valid token."


class ForbiddenError(ProductError):
    code = "forbidden"
    status = 403
    sentence = "The page is out of date. Reload it and try again."


class MissingScopeError(ForbiddenError):
    code = "missing_scope"
    sentence = "This token may not do that."

    def __init__(self, scope: str) -> None:
        super().__init__(f"This token may not do that: it lacks the scope {scope}.")
        self.scope = scope


class NotFoundError(ProductError):
    code = "not_found"
    status = 404
    sentence = "There is nothing here, or it is not yours to see."


class UnknownLinkError(NotFoundError):
    sentence = "This link leads nowhere. Perhaps a part of its address is missing."


class ConflictError(ProductError):
    code = "conflict"
    status = 409
    sentence = "This cannot be done in the present state."


class InUseError(ConflictError):
    code = "in_use"
    sentence = "This session is being captured from another page."


class UploadBusyError(ConflictError):
    code = "upload_busy"
    status = 423
    is_retryable = True
    sentence = "Another request is still writing to this upload. Try again in a moment."


class SessionEndedError(ConflictError):
    code = "ended"
    sentence = "This session has ended."


class StaleOffsetError(ConflictError):
    code = "stale_offset"
    is_retryable = True
    sentence = "The upload continues at another place."


class StillAnsweringError(ConflictError):
    code = "still_answering"
    is_retryable = True
    sentence = "This request came before and is still being answered. Ask again in a moment."


class ChangedMeanwhileError(ProductError):
    code = "changed_meanwhile"
    status = 412
    sentence = "It has changed since you read it. Nothing was changed: read it again first."


class InvalidInputError(ProductError):
    code = "invalid_input"
    status = 400
    sentence = "The request could not be understood."


class KeyReusedError(InvalidInputError):
    code = "key_reused"
    status = 422
    sentence = "This Idempotency-Key came with another request. Nothing was done: take a new one."


class TooLargeError(ProductError):
    code = "too_large"
    status = 413
    sentence = "This is larger than the server accepts."


class OverQuotaError(TooLargeError):
    code = "over_quota"
    sentence = "This is more than you may keep on this server. Delete what is no longer needed."

    @classmethod
    def of_person(cls, used_bytes: int, most_bytes: int) -> Self:
        return cls(
            f"This does not fit: you keep {used_bytes / 1024**3:.1f} of "
            f"{most_bytes / 1024**3:.3g} GB here. Delete for ever what is no longer needed."
        )


class TooFastError(ProductError):
    code = "too_fast"
    status = 429
    is_retryable = True
    sentence = "This came faster than the server takes it. Slow down and send it again."


class TooManyUploadsError(TooFastError):
    code = "too_many_uploads"
    sentence = "You have too many unfinished uploads. Finish or cancel one first."

    @classmethod
    def of_person(cls, most: int) -> Self:
        what = "1 unfinished upload" if most == 1 else f"{most} unfinished uploads"
        return cls(f"You have {what}, which is the limit. Finish or cancel one first.")


class TryLaterError(ProductError):
    code = "try_later"
    status = 503
    is_retryable = True
    sentence = "The server is behind. Nothing was lost; it goes on in a moment."


class TooManySessionsError(TryLaterError):
    code = "too_many_sessions"
    sentence = "The server takes no more live sessions at the moment. Try again when one has ended."

    @classmethod
    def of_person(cls, most: int) -> Self:
        what = "1 live session" if most == 1 else f"{most} live sessions"
        return cls(f"You have {what} running, which is the limit. End one first.")


class TooManyViewersError(TryLaterError):
    code = "too_many_viewers"
    sentence = "The server takes no more readers at the moment. Try again in a few minutes."

    @classmethod
    def of_session(cls, most: int) -> Self:
        return cls(f"{most} people read these captions, which is the limit. Try again later.")


class NoSpaceError(ProductError):
    code = "no_space"
    status = 507
    is_retryable = True
    sentence = "The server's disk is full. Nothing was lost; try again when there is room."


class LeaseLostError(ProductError):
    code = "lease_lost"
    sentence = "Another worker has taken over this job."
