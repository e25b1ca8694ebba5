"""How much of a track was lost, found out from its packets in the order of the file.

A decoder leaves out what it cannot read and says nothing; only the packets around it tell. A hole
in the time stamps alone is no damage: a browser leaves one where its microphone was off.
"""

from __future__ import annotations

from typing import Any, Final

from asr_engine.batch.headers import TAGS

MIN_HOLE_S: Final = 0.1
MAX_HOLE_S: Final = 600
"""A jump of time stamps beyond this is a fault of the stamps, not a hole in the sound."""
MIN_LOST_S: Final = 0.3
"""Less holds no word."""
GAPLESS: Final = frozenset({"flac"})
"""Containers in which a recorder cannot leave a hole: each is damage."""
DENSE: Final = frozenset({"matroska", "ogg"})
"""Containers that hold little beside packets, so that a hole with bytes in it is damage."""
HEAD_BYTES: Final = 600
"""What such a container may put between two packets: an Ogg page begins with up to 282."""
AMR_PAUSES: Final = {"amr_nb": 8, "amr_wb": 9}
"""Frame types from which on an AMR packet is a pause; the decoder refuses them."""


class Damage:
    """Fed with every packet of a container while one track of it is decoded."""

    def __init__(self, container: Any, stream: Any) -> None:
        self.lost_s = 0.0
        """Seconds inside the track that did not decode."""
        self.other_end_s = 0.0
        """Time stamp at which the other tracks end."""
        self._name = container.format.name.split(",")[0]
        self._codec = stream.codec_context.codec.canonical_name
        self._heard = stream.index
        self._bases = {one.index: float(one.time_base or 0) for one in container.streams}
        self._at = self._end = -1  # the last packet's place in the file; Ogg's is that of its page
        self._largest = 0
        self._hole_bytes = 0
        """Bytes that belong to no packet, before the place of the last and since the one before it
        that was heard. (An Ogg page's own first packet may still have the stamp expected.)"""
        self._is_heard = False
        self._next_s: float | None = None
        self._good_bytes = self._held_bytes = 0
        self._good_s = 0.0

    def read(self, packet: Any) -> None:
        """A packet of any track, before it is decoded."""
        if packet.size and packet.pos is not None and packet.pos >= 0:
            self._place(packet.pos, packet.size)
        if packet.pts is None:
            return
        base = self._bases.get(packet.stream_index, 0.0)
        start_s, length_s = packet.pts * base, (packet.duration or 0) * base
        if packet.stream_index != self._heard:
            self.other_end_s = max(self.other_end_s, start_s + length_s)
            return
        hole_s = 0.0 if self._next_s is None else start_s - self._next_s
        if hole_s > MIN_HOLE_S and self._is_damage():
            self.lost_s += hole_s
        self._next_s, self._is_heard = start_s + length_s, True

    def _place(self, at: int, size: int) -> None:
        if at == self._at:
            self._end += size
        else:
            if self._end >= 0:
                self._hole_bytes = max(self._hole_bytes * (not self._is_heard), at - self._end)
                self._is_heard = False
            self._at, self._end = at, max(self._end, at + size)
        self._largest = max(self._largest, size)

    def _is_damage(self) -> bool:
        # A packet may begin in the page before the one where it is found.
        is_large = self._hole_bytes > HEAD_BYTES + self._largest * (self._name == "ogg")
        return self._name in GAPLESS or (self._name in DENSE and is_large)

    def good(self, packet: Any) -> None:
        """A packet of the track that decoded."""
        if self._good_bytes:  # what does not decode before the first or behind the last is no sound
            self.lost_s += self._held_bytes * self._good_s / self._good_bytes
        self._held_bytes = 0
        self._good_bytes += packet.size
        self._good_s += (packet.duration or 0) * self._bases[self._heard]

    def bad(self, packet: Any) -> None:
        """A packet of the track that did not: garbage between MP3 frames is one packet, so its
        length is known by its bytes."""
        if not bytes(packet)[:8].startswith(TAGS):
            self._held_bytes += packet.size

    def is_pause(self, packet: Any) -> bool:
        """Whether a packet that did not decode holds no sound by its own word."""
        pause = AMR_PAUSES.get(self._codec)
        first = bytes(packet)[:1]
        return pause is not None and bool(first) and first[0] >> 3 & 0xF >= pause
