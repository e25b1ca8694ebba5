"""Cache-aware models exported and served by ONNX Runtime: the text of NeMo, without NeMo."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import open_dict

from asr_engine.audio import FloatSamples
from asr_engine.backends.cache_aware import export, nemo
from asr_engine.backends.cache_aware.export import export_model, export_onnx
from asr_engine.backends.cache_aware.nemo import CTC, RNNT, NemoNetwork
from asr_engine.backends.cache_aware.network import Network, Token
from asr_engine.backends.cache_aware.onnx import ENCODER, OnnxNetwork
from asr_engine.errors import ModelError, StreamError, UnsupportedLanguageError
from asr_engine.evaluation import count_errors
from asr_engine.store import ModelKind, ModelStore
from tests.fakes.digits import DIGITS_MODEL, digits, digits_model, padded
from tests.fakes.exported_digits import exported_digits

FRAME = 1280
MODES = {"80": [1], "160": [2], "560": [7], "1120": [14], "mixed": [2, 14, 1, 1, 7]}


def load(folder: Path) -> OnnxNetwork:
    return OnnxNetwork(folder, slots=4, batch_limit=4)


@pytest.fixture(scope="module", params=[RNNT, CTC])
def network(request: pytest.FixtureRequest) -> OnnxNetwork:
    return load(exported_digits(request.param))


def hear(
    network: Network, slot: int, audio: FloatSamples, chunks: Sequence[int]
) -> list[tuple[int, Token]]:
    """The tokens of `audio`, cut by `chunks` (frames, over and over), behind their frames."""
    found, position, index = [], 0, 0
    while position < len(audio):
        frames = chunks[index % len(chunks)]
        index += 1
        part = audio[position : position + frames * FRAME]
        chunk = np.pad(part, (0, frames * FRAME - len(part)))[None]
        first = position // FRAME
        found += [(first + token.frame, token) for token in network.step([slot], chunk)[0]]
        position += chunk.shape[1]
    return found


def heard_afresh(
    network: Network, audio: FloatSamples, chunks: Sequence[int], *, slot: int = 0
) -> list[tuple[int, int]]:
    """Frames and labels of `audio` as the beginning of a stream."""
    network.reset(slot, language=None)
    return [(frame, token.id) for frame, token in hear(network, slot, audio, chunks)]


def text_of(network: Network, heard: Sequence[tuple[int, int]]) -> str:
    pieces = network.traits.pieces
    return "".join(pieces[label] for _, label in heard).replace("▁", " ").strip()


def snapshot(network: OnnxNetwork) -> list[np.ndarray[Any, Any]]:
    """Every array in which the network keeps something for its slots."""
    front_end, decoder = network._front_end, network._decoder
    arrays = [network._attention, network._convolution, network._cached, network._prompts]
    arrays += [front_end._samples, front_end._mel]
    if hasattr(decoder, "_last"):
        arrays.append(decoder._last)
    else:
        arrays += [decoder._said.output, decoder._said.hidden, decoder._said.cell]
    return [array.copy() for array in arrays]


def same(before: list[np.ndarray[Any, Any]], after: list[np.ndarray[Any, Any]]) -> bool:
    return all(map(np.array_equal, before, after))


@pytest.mark.parametrize("decoder", [RNNT, CTC])
@pytest.mark.parametrize("mode", MODES)
def test_tokens_and_their_frames_are_those_of_nemo(decoder: str, mode: str) -> None:
    """Beyond seven seconds too, where the cache is full; one graph serves all modes."""
    theirs = NemoNetwork(digits_model(), decoder=decoder, slots=1, batch_limit=1)
    ours = load(exported_digits(decoder))
    audio = np.concatenate([digits("seen")[0].samples(), digits("heldout")[0].samples()])
    heard = heard_afresh(ours, audio, MODES[mode])
    assert heard == heard_afresh(theirs, audio, MODES[mode])
    assert len(heard) > 12


def test_the_traits_are_those_of_nemo(network: OnnxNetwork) -> None:
    decoder = network._description.decoder
    theirs = NemoNetwork(digits_model(), decoder=decoder, slots=4, batch_limit=4)
    assert network.traits == theirs.traits


def test_the_front_end_is_nemos(network: OnnxNetwork) -> None:
    theirs = nemo._FrontEnd(digits_model(), torch.device("cpu"), 2)
    rng = np.random.default_rng(5)
    loud = rng.normal(0, 0.3, (1, 14 * FRAME)).astype(np.float32)
    speech = digits("seen")[1].samples()[None, : 2 * FRAME]
    network.reset(1, language=None)
    for audio in (speech, loud, np.zeros((1, FRAME), np.float32), speech):
        mel, state = network._front_end.hear(np.array([1]), audio)
        expected, their_state = theirs.hear(torch.tensor([1]), audio)
        assert mel.shape == tuple(expected.shape)
        assert np.abs(mel - expected.numpy()).max() < 1e-4
        network._front_end.keep(np.array([1]), state)
        theirs.keep(torch.tensor([1]), their_state)


def test_confidences_are_probabilities(network: OnnxNetwork) -> None:
    network.reset(0, language=None)
    tokens = [token for _, token in hear(network, 0, digits("heldout")[0].samples(), [14])]
    confidences = [token.confidence for token in tokens if token.confidence is not None]
    assert len(confidences) == len(tokens) > 3
    assert all(0 < confidence <= 1 for confidence in confidences)
    assert len(set(confidences)) > 1


def test_a_reset_slot_remembers_nothing(network: OnnxNetwork) -> None:
    first, second = (item.samples() for item in digits("seen")[:2])
    fresh = heard_afresh(network, second, [7])
    hear(network, 0, first, [7])
    assert heard_afresh(network, second, [7]) == fresh


def test_a_reset_decoder_has_heard_but_not_said(network: OnnxNetwork) -> None:
    network.reset(0, language=None)
    hear(network, 0, digits("seen")[0].samples(), [7])
    before = snapshot(network)
    decoder_arrays = 1 if network._description.decoder == CTC else 3
    network.reset_decoder([0])
    after = snapshot(network)
    assert same(before[:-decoder_arrays], after[:-decoder_arrays])
    network.reset(0, language=None)
    fresh = snapshot(network)
    assert same(after[-decoder_arrays:], fresh[-decoder_arrays:])
    assert not same(after[:-decoder_arrays], fresh[:-decoder_arrays])


@pytest.mark.parametrize("is_int8", [False, True])
def test_slots_do_not_hear_each_other(*, is_int8: bool) -> None:
    """In any order of slots and at any position, beside louder and softer streams."""
    network = load(exported_digits(RNNT, is_int8=is_int8))
    audio = [
        padded(item.samples() * loudness, 7 * FRAME).astype(np.float32)
        for item, loudness in zip(digits("seen")[:3], (0.1, 1.0, 3.0), strict=True)
    ]
    alone = [heard_afresh(network, samples, [7], slot=3) for samples in audio]
    slots = [2, 0, 3]
    for slot in slots:
        network.reset(slot, language=None)
    together: dict[int, list[tuple[int, int]]] = {slot: [] for slot in slots}
    for step in range(max(map(len, audio)) // (7 * FRAME) + 2):
        live = [
            (slot, samples[start : start + 7 * FRAME], start // FRAME)
            for delay, (slot, samples) in enumerate(zip(slots, audio, strict=True))
            if 0 <= (start := (step - delay) * 7 * FRAME) < len(samples)
        ]
        if step % 2:
            live.reverse()
        if not live:
            continue
        emitted = network.step([slot for slot, _, _ in live], np.stack([x for _, x, _ in live]))
        for (slot, _, first), tokens in zip(live, emitted, strict=True):
            together[slot] += [(first + token.frame, token.id) for token in tokens]
    assert [together[slot] for slot in slots] == alone


@pytest.mark.parametrize(
    ("slots", "shape"),
    [([0], (1, FRAME - 1)), ([0], (1, 3 * FRAME)), ([0, 0], (2, FRAME)), ([0, 1], (1, FRAME))],
)
def test_misuse_is_refused_and_changes_nothing(
    network: OnnxNetwork, slots: list[int], shape: tuple[int, int]
) -> None:
    before = snapshot(network)
    with pytest.raises(StreamError):
        network.step(slots, np.zeros(shape, np.float32))
    assert same(before, snapshot(network))


def test_a_step_that_fails_changes_no_slot(
    network: OnnxNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    audio = digits("seen")[0].samples()
    network.reset(1, language=None)
    hear(network, 1, audio[: 14 * FRAME], [7])
    before = snapshot(network)
    decode = network._decoder.decode

    def fail(*args: Any) -> None:
        decode(*args)
        raise RuntimeError("out of memory")

    monkeypatch.setattr(network._decoder, "decode", fail)
    with pytest.raises(RuntimeError):
        network.step([1], audio[None, 14 * FRAME : 21 * FRAME])
    assert same(before, snapshot(network))


@pytest.mark.parametrize("decoder", [RNNT, CTC])
def test_weights_of_one_byte_hear_about_the_same(decoder: str) -> None:
    small, large = exported_digits(decoder, is_int8=True), exported_digits(decoder)
    assert (small / ENCODER).stat().st_size < 0.5 * (large / ENCODER).stat().st_size
    network = load(small)
    errors = words = 0
    for item in digits("seen"):
        audio = padded(item.samples(), FRAME, silence=4 * FRAME)
        count = count_errors(item.text, text_of(network, heard_afresh(network, audio, [7])), "en")
        errors, words = errors + count.errors, words + len(item.text.split())
    assert words > 30
    assert errors <= 0.2 * words


def test_serving_needs_neither_torch_nor_nemo() -> None:
    code = (
        "import sys; from pathlib import Path; import numpy as np\n"
        "from asr_engine.backends.cache_aware.onnx import OnnxNetwork\n"
        "network = OnnxNetwork(Path(sys.argv[1]), slots=1, batch_limit=1)\n"
        "network.reset(0, language=None)\n"
        "network.step([0], np.zeros((1, 1280), np.float32))\n"
        "print({'torch', 'nemo', 'onnx'} & {name.split('.')[0] for name in sys.modules})\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(exported_digits(RNNT))],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert (result.stdout.strip(), result.returncode) == ("set()", 0), result.stderr


def test_large_weights_stand_beside_their_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph file holds at most two gigabytes."""
    monkeypatch.setattr(export, "EMBEDDED_BYTES", 0)
    export_model(digits_model(), tmp_path, is_int8=False, decoder=CTC)
    whole = (exported_digits(CTC) / ENCODER).stat().st_size
    assert (tmp_path / ENCODER).stat().st_size < 0.2 * whole
    assert (tmp_path / "encoder.weights").stat().st_size > 0.8 * whole
    audio = digits("seen")[2].samples()
    heard = heard_afresh(load(tmp_path), audio, [14])
    assert heard == heard_afresh(load(exported_digits(CTC)), audio, [14])


@pytest.fixture
def own_model() -> Any:
    """The small model, to be changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nemo.restore(DIGITS_MODEL, "cpu")


@pytest.fixture
def prompted_model(own_model: Any) -> Any:
    """The small model as one of three languages that are told by a prompt."""
    model = own_model
    width, prompts = model.encoder.d_model, 4
    torch.manual_seed(1)
    kernel = torch.nn.Linear(width + prompts, width)
    torch.nn.init.eye_(kernel.weight)
    with torch.no_grad():
        kernel.weight[:, width:] = torch.randn(width, prompts)
    model.prompt_kernel, model.num_prompts, model.concat = kernel, prompts, True
    locales = {"en-US": 0, "de-DE": 2, "zh-CN": 3, "auto": 1}
    with open_dict(model.cfg):
        model.cfg.model_defaults.prompt_dictionary = locales
    return model.eval()


def test_a_multilingual_model_is_told_the_language(tmp_path: Path, prompted_model: Any) -> None:
    export_model(prompted_model, tmp_path, is_int8=False, decoder=CTC)
    ours = load(tmp_path)
    theirs = NemoNetwork(prompted_model, decoder=CTC, slots=4, batch_limit=4)
    assert ours.traits == theirs.traits
    audio = digits("seen")[0].samples()
    heard = {}
    for language in ("en", "de", "zh", None):
        ours.reset(0, language=language)
        theirs.reset(0, language=language)
        heard[language] = [(at, token.id) for at, token in hear(ours, 0, audio, [14])]
        expected = [(at, token.id) for at, token in hear(theirs, 0, audio, [14])]
        assert heard[language] == expected
    assert len(set(map(tuple, heard.values()))) > 1
    before = snapshot(ours)
    with pytest.raises(UnsupportedLanguageError):
        ours.reset(0, language="fr")
    assert same(before, snapshot(ours))


def test_an_encoder_of_another_make_is_exported_too(tmp_path: Path, own_model: Any) -> None:
    """Scaled input, batch norms, no biases, another past: what published models differ in."""
    from nemo.collections.asr.modules import ConformerEncoder

    torch.manual_seed(2)
    own_model.encoder = ConformerEncoder(
        feat_in=80,
        n_layers=3,
        d_model=96,
        subsampling="dw_striding",
        subsampling_factor=8,
        subsampling_conv_channels=16,
        causal_downsampling=True,
        n_heads=8,
        att_context_size=[[28, 13], [28, 3], [28, 0]],
        att_context_style="chunked_limited",
        xscaling=True,
        untie_biases=False,
        conv_kernel_size=5,
        conv_norm_type="batch_norm",
        conv_context_size="causal",
        use_bias=False,
    )
    for layer in own_model.encoder.layers:
        layer.conv.batch_norm.running_mean.normal_()
        layer.conv.batch_norm.running_var.uniform_(0.5, 2)
        torch.nn.init.normal_(layer.self_attn.pos_bias_u)
        torch.nn.init.normal_(layer.self_attn.pos_bias_v)
    # A head of its own as well: the trained one calls every frame of a strange encoder silence.
    torch.nn.init.normal_(own_model.ctc_decoder.decoder_layers[0].weight)
    export_model(own_model.eval(), tmp_path, is_int8=False, decoder=CTC)
    ours, theirs = load(tmp_path), NemoNetwork(own_model, decoder=CTC, slots=4, batch_limit=4)
    assert ours.traits.chunk_frames == {80: 1, 320: 4, 1120: 14}
    audio = digits("seen")[0].samples()
    heard, expected = (hear(network, 1, audio, [14, 4, 1]) for network in (ours, theirs))
    assert [(at, token.id) for at, token in heard] == [(at, token.id) for at, token in expected]
    assert [token.confidence for _, token in heard] == pytest.approx(
        [token.confidence for _, token in expected], abs=1e-4
    )
    assert len(heard) > 8


@pytest.mark.parametrize(
    ("where", "value", "complaint"),
    [
        ("encoder.att_context_style", "regular", "cannot stream"),
        ("encoder.self_attention_model", "abs_pos", "cannot stream"),
        ("encoder.att_context_size_all", [[70, 13], [70, 3]], "do not share one cache"),
        ("encoder.att_context_size_all", [[70, 13], [56, 1]], "do not share one cache"),
        ("encoder.att_context_size_all", [[-1, 13]], "do not share one cache"),
        ("encoder.reduction_position", 1, "drops frames"),
        ("preprocessor.featurizer.normalize", "per_feature", "front end"),
        ("preprocessor.featurizer.log_zero_guard_type", "clamp", "front end"),
        ("decoder.prediction", {"dec_rnn": torch.nn.GRU(2, 2)}, "no LSTM"),
    ],
)
def test_a_model_that_would_be_served_wrongly_is_not_exported(
    tmp_path: Path, where: str, value: Any, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = digits_model()
    *path, name = where.split(".")
    for step in path:
        owner = getattr(owner, step)
    if name == "prediction":
        monkeypatch.delitem(owner._modules, name)
    monkeypatch.setattr(owner, name, value, raising=False)
    with pytest.raises(ModelError, match=complaint):
        export_model(digits_model(), tmp_path, is_int8=False, decoder=RNNT)
    assert not list(tmp_path.iterdir())


def test_a_decoder_that_the_model_lacks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(digits_model()._modules, "ctc_decoder")
    with pytest.raises(ModelError, match="no CTC decoder"):
        export_model(digits_model(), tmp_path, is_int8=False, decoder=CTC)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelStore:
    monkeypatch.setattr(export, "restore", lambda path, device: digits_model())
    store = ModelStore(tmp_path / "models", {})
    store.add("digits", DIGITS_MODEL, licence="CC BY-SA 4.0")
    return store


def test_an_exported_model_is_pinned_under_its_own_name(store: ModelStore) -> None:
    entry = export_onnx(store, "digits", "digits-fast", is_int8=False, decoder=None)
    assert store.kind("digits-fast") is ModelKind.ONNX
    assert entry.licence == "CC BY-SA 4.0"
    folder = store.path("digits-fast")
    assert load(folder)._description.decoder == RNNT
    assert {file.name for file in entry.files} == {
        path.name for path in folder.iterdir() if not path.name.startswith((".", "model.json"))
    }
    with pytest.raises(ModelError, match="no NeMo model"):
        export_onnx(store, "digits-fast", "again", is_int8=False, decoder=None)


def test_an_export_that_fails_leaves_nothing(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, device: str) -> None:
        raise ModelError("unreadable")

    monkeypatch.setattr(export, "restore", fail)
    with pytest.raises(ModelError, match="unreadable"):
        export_onnx(store, "digits", "digits-fast", is_int8=False, decoder=None)
    assert [status.entry.name for status in store.status()] == ["digits"]


class _Payload:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


def test_a_checkpoint_that_is_more_than_weights_is_refused_unrun(tmp_path: Path) -> None:
    """`.nemo` files carry a pickle: only tensors may come out of it."""
    trap = tmp_path / "trap"
    path = tmp_path / "evil.nemo"
    written = io.BytesIO()
    torch.save({"weight": _Payload(trap)}, written)
    checkpoint = written.getvalue()
    with tarfile.open(DIGITS_MODEL) as source, tarfile.open(path, "w") as target:
        for member in source.getmembers():
            content = source.extractfile(member) if member.isfile() else None
            if member.name.endswith("model_weights.ckpt"):
                member.size, content = len(checkpoint), io.BytesIO(checkpoint)
            target.addfile(member, content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ModelError):
            nemo.restore(path, "cpu")
    assert not trap.exists()
    # Our own, and the proof that it would have run.
    torch.load(io.BytesIO(checkpoint), weights_only=False)
    assert trap.exists()
