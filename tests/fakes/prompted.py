"""A small model with a language prompt: the digits model, made deaf to German."""

from __future__ import annotations

import tarfile
import warnings
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf

from tests.fakes.digits import DIGITS_MODEL, digits_model

PROMPTS = {"en-US": 0, "en-GB": 1, "de-DE": 2, "zh-CN": 3, "auto": 4}
DEAF_TO = "de-DE"
_DEAFENING = -1e4


def write_prompted_model(folder: Path) -> Path:
    """A `.nemo` file in `folder` of the class that Nemotron 3.5 belongs to."""
    plain = digits_model()
    config = plain.cfg.copy()
    OmegaConf.set_struct(config, False)
    del config["target"]  # the class that a restored file makes: the plain one
    config.model_defaults.initialize_prompt_feature = True
    config.model_defaults.num_prompts = len(PROMPTS)
    config.model_defaults.prompt_dictionary = PROMPTS
    config.tokenizer = {"type": "bpe", "dir": str(_unpack_tokenizer(folder))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from nemo.collections.asr.models.hybrid_rnnt_ctc_bpe_models_prompt import (
            EncDecHybridRNNTCTCBPEModelWithPrompt,
        )

        model = EncDecHybridRNNTCTCBPEModelWithPrompt(cfg=config)
        model.load_state_dict(plain.state_dict(), strict=False)
        _set_kernel(model)
        path = folder / "prompted.nemo"
        model.save_to(str(path))
    return path


def _unpack_tokenizer(folder: Path) -> Path:
    target = folder / "tokenizer"
    target.mkdir()
    with tarfile.open(DIGITS_MODEL) as archive:
        for member in archive.getmembers():
            for name in ("tokenizer.model", "tokenizer.vocab", "vocab.txt"):
                if member.name.endswith(name):
                    data = archive.extractfile(member)
                    assert data is not None
                    (target / name).write_bytes(data.read())
    return target


def _set_kernel(model: Any) -> None:
    """Let every prompt pass the frames on unchanged, x = relu(x) - relu(-x), but one."""
    first, _, last = model.prompt_kernel
    size = model.cfg.model_defaults.enc_hidden
    same = torch.eye(size)
    with torch.no_grad():
        first.weight.zero_()
        first.weight[:, :size] = torch.cat([same, -same])
        first.weight[:, size + PROMPTS[DEAF_TO]] = _DEAFENING
        first.bias.zero_()
        last.weight.copy_(torch.cat([same, -same], dim=1))
        last.bias.zero_()
