"""The small model: NeMo's cache-aware FastConformer hybrid, scaled down to a million parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.data.nemo.train.strings import DIGITS, SAMPLE_RATE

WIDTH = 96
MELS = 80
SUBSAMPLING = 8
MEL_S = 0.01
FRAME_S = MEL_S * SUBSAMPLING
# Left and right context in frames: delays of 1120, 560, 160 and 80 ms.
CONTEXTS = ((70, 13), (70, 6), (70, 1), (70, 0))
VOCABULARY = 44
CORPUS_LINES = 3000
FAST_EMIT = 5e-3


def make_tokenizer(folder: Path, seed: int) -> None:
    """Train the word pieces on made lines of digits; the folder gets NeMo's tokenizer files."""
    from nemo.collections.common.tokenizers.sentencepiece_tokenizer import create_spt_model

    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    corpus = folder / "corpus.txt"
    lines = (" ".join(rng.choice(DIGITS, rng.integers(1, 9))) for _ in range(CORPUS_LINES))
    corpus.write_text("\n".join(lines) + "\n")
    create_spt_model(
        str(corpus),
        vocab_size=VOCABULARY,
        sample_size=-1,
        do_lower_case=True,
        tokenizer_type="bpe",
        output_dir=str(folder),
        character_coverage=1.0,
    )


def make_model(tokenizer: Path) -> Any:
    """A model of NeMo with random weights around the tokenizer."""
    from nemo.collections.asr.models import EncDecHybridRNNTCTCBPEModel
    from omegaconf import OmegaConf

    return EncDecHybridRNNTCTCBPEModel(cfg=OmegaConf.create(configuration(tokenizer)))


def configuration(tokenizer: Path) -> dict[str, Any]:
    """What NeMo's model takes, in the words of its own recipes."""
    modules = "nemo.collections.asr.modules"
    return {
        "sample_rate": SAMPLE_RATE,
        "compute_eval_loss": False,
        "log_prediction": False,
        "skip_nan_grad": False,
        "model_defaults": {"enc_hidden": WIDTH, "pred_hidden": WIDTH, "joint_hidden": WIDTH},
        "tokenizer": {"dir": str(tokenizer), "type": "bpe"},
        "preprocessor": {
            "_target_": f"{modules}.AudioToMelSpectrogramPreprocessor",
            "sample_rate": SAMPLE_RATE,
            "normalize": "NA",  # a stream's mean is not known while it runs
            "window_size": 0.025,
            "window_stride": MEL_S,
            "window": "hann",
            "features": MELS,
            "n_fft": 512,
            "frame_splicing": 1,
            "dither": 1e-5,
            "pad_to": 0,
        },
        "spec_augment": {
            "_target_": f"{modules}.SpectrogramAugmentation",
            "freq_masks": 2,
            "freq_width": 12,
            "time_masks": 2,
            "time_width": 0.03,
        },
        "encoder": {
            "_target_": f"{modules}.ConformerEncoder",
            "feat_in": MELS,
            "feat_out": -1,
            "n_layers": 4,
            "d_model": WIDTH,
            "use_bias": True,
            "subsampling": "dw_striding",
            "subsampling_factor": SUBSAMPLING,
            "subsampling_conv_channels": 32,
            "causal_downsampling": True,
            "ff_expansion_factor": 4,
            "self_attention_model": "rel_pos",
            "n_heads": 4,
            "att_context_size": [list(context) for context in CONTEXTS],
            "att_context_style": "chunked_limited",
            "att_context_probs": [1 / len(CONTEXTS)] * len(CONTEXTS),
            "xscaling": False,
            "pos_emb_max_len": 5000,
            "conv_kernel_size": 9,
            "conv_norm_type": "layer_norm",
            "conv_context_size": "causal",
            "dropout": 0.1,
            "dropout_pre_encoder": 0.1,
            "dropout_emb": 0.0,
            "dropout_att": 0.1,
        },
        "decoder": {
            "_target_": f"{modules}.RNNTDecoder",
            "normalization_mode": None,
            "random_state_sampling": False,
            "blank_as_pad": True,
            "prednet": {
                "pred_hidden": WIDTH,
                "pred_rnn_layers": 1,
                "t_max": None,
                "dropout": 0.1,
            },
        },
        "joint": {
            "_target_": f"{modules}.RNNTJoint",
            "log_softmax": False,
            "preserve_memory": False,
            "fuse_loss_wer": False,
            "fused_batch_size": 16,
            "jointnet": {"joint_hidden": WIDTH, "activation": "relu", "dropout": 0.1},
        },
        "decoding": {"strategy": "greedy_batch", "greedy": {"max_symbols": 10}},
        "aux_ctc": {
            "ctc_loss_weight": 0.3,
            "use_cer": False,
            "ctc_reduction": "mean_batch",
            "decoder": {
                "_target_": f"{modules}.ConvASRDecoder",
                "feat_in": None,
                "num_classes": -1,
                "vocabulary": [],
            },
            "decoding": {"strategy": "greedy"},
        },
        "interctc": {"loss_weights": [], "apply_at_layers": []},
        "loss": {
            "loss_name": "default",
            "warprnnt_numba_kwargs": {"fastemit_lambda": FAST_EMIT, "clamp": -1.0},
        },
        "train_ds": None,
        "validation_ds": None,
        "test_ds": None,
        "optim": {"name": "adamw", "lr": 1e-3},
    }


def save(model: Any, path: Path) -> None:
    """Write the model with half-precision weights: NeMo restores them into single precision."""
    kept = {name: parameter.data for name, parameter in model.named_parameters()}
    try:
        for parameter in model.parameters():
            parameter.data = parameter.data.half()
        model.cfg.joint.log_softmax = None  # training wants raw scores, decoding NeMo's own choice
        model.cfg.tokenizer.dir = "tokenizer"  # the files are inside; where they were is nobody's
        model.save_to(str(path))
    finally:
        model.cfg.joint.log_softmax = False
        for name, parameter in model.named_parameters():
            parameter.data = kept[name]


def restore(path: Path) -> Any:
    """The model that `save` wrote, with its tokenizer, in single precision."""
    from nemo.collections.asr.models import ASRModel

    model = ASRModel.restore_from(str(path), map_location="cpu")
    model.joint.log_softmax = False
    model.cfg.joint.log_softmax = False
    return model
