"""NeMo's streaming Sortformer: up to four speakers, heard in one go with a memory of each.

The model's own steps are driven chunk by chunk, so that memory is that of one chunk and of the
model's speaker cache, however long the recording. That memory is not stored: work that stops is
begun again, which on a GPU costs a minute for hours of audio.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE, FloatSamples, samples_to_ms
from asr_engine.config import EngineSettings
from asr_engine.diarisation.port import Hearing, Turn, Voice
from asr_engine.diarisation.turns import turns_of
from asr_engine.errors import ModelError, ModelMissingError
from asr_engine.store import NEMO_NAME, ModelStore

STEP_SAMPLES: Final = SAMPLE_RATE // 100
"""Between two feature frames."""
MARGIN_FRAMES: Final = 4
"""Frames at a cut that hear its edge: computed, and left out."""
SPEAKING: Final = 0.5
"""Probability from which a speaker speaks."""


def create(settings: EngineSettings) -> SortformerDiariser:
    """The model `settings.sortformer_model` of the store.

    Raises ModelMissingError, ModelUnverifiedError, ModelError.
    """
    if not settings.sortformer_model:
        raise ModelMissingError("ASR_SORTFORMER_MODEL names no model of the store")
    path = ModelStore(settings.model_dir).path(settings.sortformer_model) / NEMO_NAME
    if importlib.util.find_spec("nemo") is None:
        raise ModelError("a Sortformer model needs requirements/nemo.txt")
    import torch

    device = settings.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NeMo compiles with what torch deprecates
            from nemo.collections.asr.models import SortformerEncLabelModel
            from nemo.utils import logging as nemo_logging

            nemo_logging.setLevel(logging.ERROR)
            model = SortformerEncLabelModel.restore_from(str(path), map_location=device)
    except Exception as error:
        raise ModelError(f"{path.name} is no Sortformer model that NeMo can load") from error
    return SortformerDiariser(model, name=settings.sortformer_model)


class SortformerDiariser:
    """A `SpeakerDiariser` that notes turns. A given number of speakers changes nothing."""

    def __init__(self, model: Any, *, name: str) -> None:
        """Raises ModelError for a model that cannot stream."""
        if not model.streaming_mode:
            raise ModelError(f"{name} hears whole recordings only: take a streaming Sortformer")
        self._model = model.eval()
        self._name = name
        self._rate = int(model.encoder.subsampling_factor)

    @property
    def name(self) -> str:
        return self._name

    def listen(self, hearing: Hearing, samples: Iterable[FloatSamples]) -> Iterator[int]:
        """As the port says; `hearing` moves on only at the end."""
        heard: list[NDArray[np.bool_]] = []
        position = hearing.next_sample
        for position, speaking in self._steps(samples):
            heard.append(speaking)
            yield position
        hearing.turns = self._turns(np.concatenate(heard)) if heard else []
        hearing.next_sample = position
        yield position

    def turns(self, hearing: Hearing, *, speakers: int | None) -> list[Turn]:
        return hearing.turns

    def _steps(self, samples: Iterable[FloatSamples]) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Position in samples and who speaks, bool [frames, speakers], for each chunk."""
        modules = self._model.sortformer_modules
        chunk = modules.chunk_len * self._rate
        left, right = (
            context * self._rate
            for context in (modules.chunk_left_context, modules.chunk_right_context)
        )
        state = modules.init_streaming_state(
            batch_size=1, async_streaming=self._model.async_streaming, device=self._model.device
        )
        audio = _Audio(samples)
        start = 0
        while True:
            frames = audio.frames(start + chunk + right + MARGIN_FRAMES)
            end, after = min(start + chunk, frames), min(start + chunk + right, frames)
            if end <= start:
                return
            before = max(0, start - left)
            features = self._features(audio, before, after)
            state, speaking = self._step(state, features, start - before, after - end)
            yield end * STEP_SAMPLES, speaking
            start = end
            audio.forget(start - left - MARGIN_FRAMES)

    def _features(self, audio: _Audio, start: int, end: int) -> Any:
        """Features [1, frames, bands] of the frames from `start` to `end`."""
        import torch

        cut = max(0, start - MARGIN_FRAMES)
        samples = torch.from_numpy(audio.cut(cut, end + MARGIN_FRAMES))[None]
        with torch.inference_mode():
            features, _ = self._model.preprocessor(
                input_signal=samples.to(self._model.device),
                length=torch.tensor([samples.shape[1]], device=self._model.device),
            )
        return features[:, :, start - cut : end - cut].transpose(1, 2)

    def _step(
        self, state: Any, features: Any, left: int, right: int
    ) -> tuple[Any, NDArray[np.bool_]]:
        import torch

        device, speakers = self._model.device, self._model.sortformer_modules.n_spk
        with torch.inference_mode():
            state, probabilities = self._model.forward_streaming_step(
                processed_signal=features,
                processed_signal_length=torch.tensor([features.shape[1]], device=device),
                streaming_state=state,
                total_preds=torch.zeros((1, 0, speakers), device=device),
                left_offset=left,
                right_offset=right,
            )
        speaking: NDArray[np.bool_] = (probabilities[0] > SPEAKING).cpu().numpy()
        return state, speaking

    def _turns(self, speaking: NDArray[np.bool_]) -> list[Turn]:
        frame_samples = self._rate * STEP_SAMPLES
        voices = []
        for column in speaking.T:
            edges = np.flatnonzero(np.diff(column.astype(np.int8), prepend=0, append=0))
            spans = tuple(
                (samples_to_ms(int(begin)), samples_to_ms(int(end)))
                for begin, end in (edges * frame_samples).reshape(-1, 2)
            )
            voices.append(Voice(0, spans, 0, np.zeros(0, np.float32)))
        return turns_of(voices, np.arange(len(voices)))


class _Audio:
    """Samples read as they are asked for, by feature frames; what is forgotten is dropped."""

    def __init__(self, samples: Iterable[FloatSamples]) -> None:
        self._samples = iter(samples)
        self._held = np.zeros(0, np.float32)
        self._first = 0

    def frames(self, wanted: int) -> int:
        """Frames that are there when it has been read up to `wanted`."""
        pieces, length = [self._held], self._first + len(self._held)
        while length < wanted * STEP_SAMPLES and (piece := next(self._samples, None)) is not None:
            pieces.append(piece)
            length += len(piece)
        self._held = np.concatenate(pieces)
        return length // STEP_SAMPLES

    def cut(self, start: int, end: int) -> FloatSamples:
        begin = start * STEP_SAMPLES - self._first
        return self._held[begin : end * STEP_SAMPLES - self._first]

    def forget(self, frame: int) -> None:
        """Drop what lies before `frame`."""
        drop = max(0, frame * STEP_SAMPLES - self._first)
        self._held = self._held[drop:]
        self._first += drop
