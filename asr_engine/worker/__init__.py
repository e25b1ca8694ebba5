"""The engine process: Redis on an event loop, the models on a thread of their own.

python -m asr_engine.worker
"""

from __future__ import annotations
