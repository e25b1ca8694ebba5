"""Models of the sizes that are served in earnest, with random weights, for measuring alone.

What a step costs hangs on a network's shape, not on its weights: these stand for models too large
to keep beside the tests. Their text means nothing. What it costs to decode, though, hangs on how
many tokens come: an untrained joint network emits ten at one frame or none at all. A few weights
are therefore set by hand, and the blank's bias so that tokens come as often as in speech
(`TOKENS_PER_FRAME`), one or two at a frame.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from asr_engine.audio import SAMPLE_RATE, FloatSamples

SEED: Final = 20_240_917
VOCABULARY: Final = 1024
TOKENS_PER_FRAME: Final = 1 / 3
"""Four tokens of a thousand-piece vocabulary a second, as people speak; a frame is 80 ms."""
CALIBRATION_S: Final = 20
CALIBRATION_ROUNDS: Final = 8
HIGHEST_BIAS: Final = 6.0
"""In standard deviations of a token's logit."""
SPOKEN_TOKENS: Final = 64
"""Tokens that are ever emitted."""
REFRAIN: Final = 20.0
KEPT: Final = 0.8
"""An emitted token is held back by REFRAIN standard deviations, times KEPT at each that follows."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A FastConformer with an RNNT decoder: 8x striding, causal, chunked limited attention."""

    name: str
    layers: int
    width: int
    mel_features: int
    heads: int = 8
    hidden: int = 640
    lookaheads: tuple[int, ...] = (13, 6, 3, 1, 0)
    left_frames: int = 56
    """NeMo wants a multiple of every chunk: 70, as in some models, has no mode of 320 ms."""


SHAPES: Final = {
    shape.name: shape
    for shape in (
        Shape("114M", layers=17, width=512, mel_features=80),
        Shape("0.6B", layers=24, width=1024, mel_features=128),
    )
}


def make_model(shape: Shape, speech: FloatSamples, *, device: str = "cpu") -> Any:
    """A NeMo RNNT model of `shape` on `device`, the same for every call there.

    `speech` is float32 [n] at 16 kHz, at least `CALIBRATION_S` long: what it should transcribe.
    """
    import torch
    from nemo.collections.asr.models import EncDecRNNTBPEModel
    from omegaconf import OmegaConf

    torch.manual_seed(SEED)
    with tempfile.TemporaryDirectory() as folder, torch.device(device):
        _train_tokenizer(Path(folder))
        # NeMo reads the vocabulary off the tokenizer.
        model = EncDecRNNTBPEModel(cfg=OmegaConf.create(_configuration(shape, folder)))
    model.eval()
    with torch.inference_mode():
        _set_token_rate(model, speech)
    return model


def _train_tokenizer(folder: Path) -> None:
    """A SentencePiece model of VOCABULARY pieces over invented words."""
    import sentencepiece

    source = random.Random(SEED)  # noqa: S311 -- the same words at every run
    syllables = [consonant + vowel for consonant in "bcdfghjklmnprstvwz" for vowel in "aeiou"]
    words = ["".join(source.choices(syllables, k=source.randint(1, 4))) for _ in range(4000)]
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(" ".join(source.choices(words, k=8)) for _ in range(4000)))
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus),
        model_prefix=str(folder / "tokenizer"),
        vocab_size=VOCABULARY,
        model_type="bpe",
        bos_id=-1,
        eos_id=-1,
        minloglevel=2,
        num_threads=1,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    names = [pieces.id_to_piece(number) for number in range(VOCABULARY)]
    (folder / "vocab.txt").write_text("\n".join(names) + "\n")


def _configuration(shape: Shape, tokenizer: str) -> dict[str, Any]:
    modules = "nemo.collections.asr.modules"
    return {
        "sample_rate": SAMPLE_RATE,
        "compute_eval_loss": False,
        "model_defaults": {
            "enc_hidden": shape.width,
            "pred_hidden": shape.hidden,
            "joint_hidden": shape.hidden,
        },
        "tokenizer": {"dir": tokenizer, "type": "bpe"},
        "preprocessor": {
            "_target_": f"{modules}.AudioToMelSpectrogramPreprocessor",
            "sample_rate": SAMPLE_RATE,
            "normalize": "NA",
            "window_size": 0.025,
            "window_stride": 0.01,
            "window": "hann",
            "features": shape.mel_features,
            "n_fft": 512,
            "dither": 0.0,
            "pad_to": 0,
        },
        "encoder": {
            "_target_": f"{modules}.ConformerEncoder",
            "feat_in": shape.mel_features,
            "feat_out": -1,
            "n_layers": shape.layers,
            "d_model": shape.width,
            "use_bias": True,
            "subsampling": "dw_striding",
            "subsampling_factor": 8,
            "subsampling_conv_channels": 256,
            "causal_downsampling": True,
            "ff_expansion_factor": 4,
            "self_attention_model": "rel_pos",
            "n_heads": shape.heads,
            "att_context_size": [[shape.left_frames, right] for right in shape.lookaheads],
            "att_context_style": "chunked_limited",
            "xscaling": False,
            "pos_emb_max_len": 5000,
            "conv_kernel_size": 9,
            "conv_norm_type": "layer_norm",
            "conv_context_size": "causal",
            "dropout": 0.0,
            "dropout_pre_encoder": 0.0,
            "dropout_emb": 0.0,
            "dropout_att": 0.0,
        },
        "decoder": {
            "_target_": f"{modules}.RNNTDecoder",
            "normalization_mode": None,
            "random_state_sampling": False,
            "blank_as_pad": True,
            "prednet": {"pred_hidden": shape.hidden, "pred_rnn_layers": 1, "dropout": 0.0},
        },
        "joint": {
            "_target_": f"{modules}.RNNTJoint",
            "log_softmax": None,
            "preserve_memory": False,
            "fuse_loss_wer": False,
            "jointnet": {"joint_hidden": shape.hidden, "activation": "relu", "dropout": 0.0},
        },
        "decoding": {
            "strategy": "greedy_batch",
            "greedy": {"max_symbols": 10, "use_cuda_graph_decoder": False},
        },
        "loss": {"loss_name": "pytorch"},
        "optim": {"name": "adamw", "lr": 0.001},
    }


def _set_token_rate(model: Any, speech: FloatSamples) -> None:
    """Let greedy decoding of `speech` emit TOKENS_PER_FRAME.

    Each of a few tokens follows a random projection of the encoder's frames of its own; the
    prediction network remembers which were said lately and holds them back, as a trained one does
    in its way: without it a frame would be said again and again.
    """
    import torch

    device = next(model.parameters()).device
    samples = torch.from_numpy(speech[: CALIBRATION_S * SAMPLE_RATE])[None].to(device)
    length = torch.tensor([samples.shape[1]], device=device)
    mel, mel_length = model.preprocessor(input_signal=samples, length=length)
    subsampling = model.encoder.pre_encode
    subsampled, _ = subsampling(x=mel.transpose(1, 2), lengths=mel_length)
    _normalise(subsampling.out, subsampled[0])
    encoded, encoded_length = model(input_signal=samples, input_signal_length=length)
    _normalise(model.joint.enc, model.joint.enc(encoded[0].T), SPOKEN_TOKENS)
    _remember_tokens(model.decoder.prediction)
    spoken = torch.arange(SPOKEN_TOKENS, device=device)
    model.joint.pred.weight[spoken] = 0
    model.joint.pred.weight[spoken, spoken] = -REFRAIN
    model.joint.pred.bias[spoken] = 0
    output = model.joint.joint_net[-1]
    output.weight[spoken] = 0
    output.weight[spoken, spoken] = 1
    output.weight[-1] = 0
    output.bias[spoken] = 0
    output.bias[SPOKEN_TOKENS:] = -1000
    low, high = 0.0, HIGHEST_BIAS
    wanted = int(encoded_length[0]) * TOKENS_PER_FRAME
    for _ in range(CALIBRATION_ROUNDS):
        output.bias[-1] = (low + high) / 2
        if _count_tokens(model, encoded, encoded_length) > wanted:
            low = (low + high) / 2
        else:
            high = (low + high) / 2


def _normalise(layer: Any, outputs: Any, units: int | None = None) -> None:
    """Change `layer` so that the first `units` of these `outputs` [n, units] have mean 0 and
    deviation 1 over the frames: what is the same in every frame would drown what is not."""
    outputs = outputs[:, :units]
    scale = 1 / outputs.std(0)
    layer.weight[:units] *= scale[:, None]
    layer.bias[:units] -= outputs.mean(0)
    layer.bias[:units] *= scale


def _remember_tokens(prediction: Any) -> None:
    """Let unit k of the LSTM rise to 1 when token k is emitted and fall by KEPT at each other."""
    import math

    import torch

    embedding, lstm = prediction["embed"].weight, prediction["dec_rnn"].lstm
    spoken = torch.arange(SPOKEN_TOKENS, device=embedding.device)
    embedding[:, spoken] = 0
    embedding[spoken, spoken] = 1
    wide_open = 10.0
    # torch orders the gates: input, forget, cell, output.
    biases = (wide_open, math.log(KEPT / (1 - KEPT)), 0.0, wide_open)
    for gate, bias in enumerate(biases):
        rows = gate * lstm.hidden_size + spoken
        for weight in (lstm.weight_ih_l0, lstm.weight_hh_l0):
            weight[rows] = 0
        lstm.bias_ih_l0[rows] = bias
        lstm.bias_hh_l0[rows] = 0
    lstm.weight_ih_l0[2 * lstm.hidden_size + spoken, spoken] = wide_open


def _count_tokens(model: Any, encoded: Any, encoded_length: Any) -> int:
    hypotheses: Sequence[Any] = model.decoding.rnnt_decoder_predictions_tensor(
        encoded, encoded_length, return_hypotheses=True
    )
    return len(hypotheses[0].y_sequence)
