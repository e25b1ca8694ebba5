"""Parts of the recorder: leadership, a session's audio on disk, its file when it has ended."""
