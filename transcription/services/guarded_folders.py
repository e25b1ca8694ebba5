"""Folders that others may write to: whatever they put there, nothing outside is touched.

Every step below a root goes by a descriptor and follows no link, so that a link which somebody puts
in the way, at whatever moment, is an OSError and never another file. The root's own path is the
administrator's, and may be a link.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


def lies_beneath(file: Path, root: Path) -> bool:
    """By its text alone: whether a part of it is a link is found out when it is opened."""
    return file.is_absolute() and ".." not in file.parts and root in file.parents


@contextmanager
def open_beneath(file: Path, roots: Iterable[Path]) -> Iterator[int]:
    """A descriptor of the regular file at `file`, which lies beneath one of `roots`.

    Raises OSError.
    """
    root = next((root for root in roots if lies_beneath(file, root)), None)
    if root is None:
        raise PermissionError
    *folders, name = file.relative_to(root).parts
    with ExitStack() as opened:
        folder = enter(opened, enter_root(opened, root), folders)
        # Non-blocking: else a named pipe would hold this thread until somebody writes to it.
        descriptor = _open(opened, name, os.O_NONBLOCK, folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PermissionError
        yield descriptor


def enter_root(opened: ExitStack, root: Path) -> int:
    """A descriptor of `root` that lives as long as `opened`. Raises OSError."""
    descriptor = os.open(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    opened.callback(os.close, descriptor)
    return descriptor


def enter(
    opened: ExitStack, folder: int, parts: Iterable[str], *, makes_missing: bool = False
) -> int:
    """A descriptor of the folder that `parts` lead to from `folder`. Raises OSError."""
    for part in parts:
        if makes_missing:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o770, dir_fd=folder)
        folder = _open(opened, part, os.O_DIRECTORY, folder)
    return folder


def _open(opened: ExitStack, name: str, flags: int, folder: int) -> int:
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | flags, dir_fd=folder)
    opened.callback(os.close, descriptor)
    return descriptor
