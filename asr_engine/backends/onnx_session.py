"""Networks on ONNX Runtime's CPU, as every backend here opens them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any


def open_network(network: Path | bytes, *, threads: int = 1) -> Any:
    """A session over the file, or the serialised network, that computes on `threads` threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Idle threads give their core back at once: it serves the sockets and the jobs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    source = str(network) if isinstance(network, Path) else network
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return onnxruntime.InferenceSession(
            source, sess_options=options, providers=["CPUExecutionProvider"]
        )
