"""NeMo's own cache-aware streaming pipeline, run by hand: what our backend is compared with."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from asr_engine.audio import FloatSamples


def build_pipeline(
    model: Path, *, decoder: str, att_context_size: Sequence[int], slots: int, device: str = "cpu"
) -> Any:
    """A pipeline of one latency mode with NeMo's own endpointing off."""
    from omegaconf import OmegaConf

    config = OmegaConf.create(
        {
            "pipeline_type": "cache_aware",
            "asr_decoding_type": decoder,
            "asr_output_granularity": "word",
            "log_level": 40,
            "matmul_precision": "high",
            "enable_itn": False,
            "enable_nmt": False,
            "lang": None,
            "cache_dir": None,
            "return_tail_result": False,
            "asr": {
                "model_name": str(model),
                "device": device,
                "device_id": 0,
                "compute_dtype": "float32" if device == "cpu" else "bfloat16",
                "use_amp": False,
                "decoding": {
                    "strategy": "greedy_batch",
                    "preserve_alignments": False,
                    "fused_batch_size": -1,
                    "greedy": {
                        "use_cuda_graph_decoder": False,
                        "enable_per_stream_biasing": False,
                        "preserve_frame_confidence": True,
                        "max_symbols": 10,
                    },
                },
            },
            "confidence": {
                "exclude_blank": True,
                "aggregation": "mean",
                "method_cfg": {
                    "name": "entropy",
                    "entropy_type": "tsallis",
                    "alpha": 0.5,
                    "entropy_norm": "exp",
                },
            },
            "itn": {
                "input_case": "lower_cased",
                "whitelist": None,
                "overwrite_cache": False,
                "max_number_of_permutations_per_split": 729,
                "left_padding_size": 4,
                "batch_size": 32,
                "n_jobs": 1,
            },
            "endpointing": {"stop_history_eou": -1, "residue_tokens_at_end": 0},
            "streaming": {
                "sample_rate": 16000,
                "batch_size": slots,
                "num_slots": slots,
                "word_boundary_tolerance": 4,
                "att_context_size": list(att_context_size),
                "use_cache": True,
                "use_feat_cache": True,
                "chunk_size_in_secs": None,
                "request_type": "frame",
            },
        }
    )
    torch.set_num_threads(1)  # see `digits_model`
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from nemo.collections.asr.inference.factory.pipeline_builder import PipelineBuilder

        return PipelineBuilder.build_pipeline(config)


def give_back_lost_mel_frame(pipeline: Any) -> Any:
    """NeMo 3.0.0 computes int(0.1699... / 0.01) mel frames for a buffer of 17: the shortest mode
    hears through a hole. Here the buffer gets its true length."""
    length = pipeline.pre_encode_cache_size + pipeline.model_chunk_size
    bufferer = pipeline.bufferer
    if bufferer.feature_buffer_len != length:
        bufferer.feature_buffer_len = pipeline.expected_feature_buffer_len = length
        bufferer.feature_buffer = torch.full(
            (bufferer.num_slots, bufferer.n_feat, length), bufferer.ZERO_LEVEL_SPEC_DB_VAL
        )
        samples = length * round(pipeline.window_stride * pipeline.sample_rate)
        for audio in bufferer.audio_bufferers:
            audio.buffer_size = audio.left_padding = samples
            audio.sample_buffer = torch.zeros(samples)
    return pipeline


def frames_of(stream: int, samples: FloatSamples, chunk: int) -> list[Any]:
    """Requests of whole chunks; the last one ends the stream."""
    from nemo.collections.asr.inference.streaming.framing.request import Frame
    from nemo.collections.asr.inference.streaming.framing.request_options import ASRRequestOptions

    audio = torch.from_numpy(samples)
    return [
        Frame(
            samples=audio[start : start + chunk],
            stream_id=stream,
            is_first=start == 0,
            is_last=start + chunk >= len(audio),
            length=chunk,
            options=ASRRequestOptions() if start == 0 else None,
        )
        for start in range(0, len(audio), chunk)
    ]


def transcribe(pipeline: Any, audio: Mapping[int, FloatSamples]) -> dict[int, str]:
    """Text of each stream: all of them step together, from the first chunk to their last."""
    chunk = round(pipeline.chunk_size_in_secs * pipeline.sample_rate)
    waiting = {stream: frames_of(stream, samples, chunk) for stream, samples in audio.items()}
    texts = dict.fromkeys(audio, "")
    while any(waiting.values()):
        requests = [frames.pop(0) for frames in waiting.values() if frames]
        for output in pipeline.transcribe_step(requests):
            texts[output.stream_id] += output.final_transcript
    return {stream: text.strip() for stream, text in texts.items()}
