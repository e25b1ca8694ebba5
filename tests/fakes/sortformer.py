"""A tiny Sortformer with random weights, of NeMo's own classes: its wiring, not its ear."""

from __future__ import annotations

import warnings
from typing import Any, Final

FEATURES: Final = 16
WIDTH: Final = 16
NARROW: Final = 8
MODULES: Final = "nemo.collections.asr.modules"


def tiny_sortformer(*, can_stream: bool = True) -> Any:
    """A `SortformerEncLabelModel` with chunks of about a second."""
    import torch
    from omegaconf import OmegaConf

    torch.manual_seed(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NeMo compiles with what torch deprecates
        from nemo.collections.asr.models import SortformerEncLabelModel

        return SortformerEncLabelModel(OmegaConf.create(_settings(can_stream))).eval()


def _settings(can_stream: bool) -> dict[str, Any]:
    silent = dict.fromkeys(
        ("dropout", "dropout_pre_encoder", "dropout_emb", "dropout_att"),
        0.0,
    )
    return {
        "sample_rate": 16_000,
        "session_len_sec": 90,
        "max_num_of_spks": 4,
        "streaming_mode": can_stream,
        "model_defaults": {"fc_d_model": WIDTH, "tf_d_model": NARROW},
        "preprocessor": {
            "_target_": f"{MODULES}.AudioToMelSpectrogramPreprocessor",
            "normalize": "NA",
            "window_size": 0.025,
            "sample_rate": 16_000,
            "window_stride": 0.01,
            "window": "hann",
            "features": FEATURES,
            "n_fft": 512,
            "frame_splicing": 1,
            "dither": 0.0,
        },
        "sortformer_modules": {
            "_target_": f"{MODULES}.sortformer_modules.SortformerModules",
            "num_spks": 4,
            "dropout_rate": 0.0,
            "fc_d_model": WIDTH,
            "tf_d_model": NARROW,
            "subsampling_factor": 8,
            "chunk_len": 12,
            "spkcache_len": 16,
            "fifo_len": 8,
            "chunk_left_context": 1,
            "chunk_right_context": 1,
            "spkcache_update_period": 12,
        },
        "encoder": {
            "_target_": f"{MODULES}.ConformerEncoder",
            "feat_in": FEATURES,
            "feat_out": -1,
            "n_layers": 1,
            "d_model": WIDTH,
            "subsampling": "dw_striding",
            "subsampling_factor": 8,
            "subsampling_conv_channels": 8,
            "ff_expansion_factor": 2,
            "self_attention_model": "rel_pos",
            "n_heads": 2,
            "att_context_size": [-1, -1],
            "conv_kernel_size": 3,
            "stochastic_depth_drop_prob": 0.0,
            **silent,
        },
        "transformer_encoder": {
            "_target_": f"{MODULES}.transformer.transformer_encoders.TransformerEncoder",
            "num_layers": 1,
            "hidden_size": NARROW,
            "inner_size": 16,
            "num_attention_heads": 2,
            "attn_score_dropout": 0.0,
            "attn_layer_dropout": 0.0,
            "ffn_dropout": 0.0,
        },
        "loss": {
            "_target_": "nemo.collections.asr.losses.bce_loss.BCELoss",
            "weight": None,
            "reduction": "mean",
        },
    }
