"""The tiny checkpoints are sound: they load, they are the same every time, and a picture changes the answer."""

import hashlib
import importlib.util
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoProcessor, AutoTokenizer

from compat.parity.cases import CASE_NAMES, Picture, Request, cases
from compat.parity.reference import ask, load_class, prompt_text
from compat.zoo import checkpoint, families, spec
from compat.zoo.build import build
from compat.zoo.clips import clip
from compat.zoo.pictures import picture
from compat.zoo.tokenizer import make_tokenizer
from hf_backend.check.compare import TOLERANCE

ROOT = Path(__file__).parents[2]


def load(family: str, **arguments: Any) -> Any:
    """The family's model, with transformers' own config: where vLLM was imported by another test of this process, `AutoConfig` has
    vLLM's class in its place (Qwen3-ASR)."""
    folder = checkpoint(family)
    if spec(family).answers_class is not None:
        return load_class(family).from_pretrained(folder, **arguments)
    config = getattr(transformers, spec(family).config_class).from_pretrained(folder)
    return getattr(transformers, spec(family).model_class).from_pretrained(folder, config=config, **arguments)


def _of(modality: str | None = None) -> list[Any]:
    def missing(family: str) -> list[str]:
        return [module for module in spec(family).requires if importlib.util.find_spec(module) is None]

    return [
        pytest.param(family, marks=pytest.mark.skipif(bool(missing(family)), reason=f"needs {missing(family)}"))
        for family in families(modality)
    ]


EVERY_FAMILY = pytest.mark.parametrize("family", _of())
WITH_PICTURES = pytest.mark.parametrize("family", _of("image"))
WITH_CLIPS = pytest.mark.parametrize("family", _of("audio"))

NORMS_OF_LAYERS = ("input_layernorm.weight", "post_attention_layernorm.weight", "operator_norm.weight")

WIDE, OTHER_WIDE, TALL = Picture(64, 48, 1), Picture(64, 48, 2), Picture(40, 72, 3)


@WITH_PICTURES
def test_a_picture_changes_the_answer(family: str) -> None:
    """HF's own answers differ for another picture, another order, another one of two; so a mix-up cannot go unseen."""

    def two(first: Picture, second: Picture) -> Request:
        return Request(("First ", first, " then ", second, " and say what changed."))

    one, other = Request(("Look at ", WIDE, " please.")), Request(("Look at ", OTHER_WIDE, " please."))
    pairs = [
        (one, other),
        (two(WIDE, TALL), two(TALL, WIDE)),
        (two(WIDE, TALL), two(OTHER_WIDE, TALL)),
        (two(TALL, WIDE), two(TALL, OTHER_WIDE)),
    ]
    if spec(family).headed:
        pairs = pairs[:1]
    answers = ask(family, {request for pair in pairs for request in pair})
    for left, right in pairs:
        difference = np.abs(answers[left].logprobs[0] - answers[right].logprobs[0]).max()
        assert difference > 50 * TOLERANCE, (left, right)
    assert len({answer.tokens for answer in answers.values()}) > 1
    # Not one token over and over: that would be equal for any two engines.
    assert len({token for answer in answers.values() for token in answer.tokens}) > 10


@WITH_CLIPS
def test_a_clip_changes_the_answer(family: str) -> None:
    """HF's own first log-probabilities differ for another clip of the same length, and for another length."""
    folder = checkpoint(family)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = load(family, dtype=torch.float32).eval()
    rate = (getattr(processor, "feature_extractor", None) or processor.audio_processor).sampling_rate
    prompt = spec(family).prompt(["Listen to ", spec(family).placeholders["audio"], " please."])
    told = []
    for seconds, seed in ((1.3, 1), (1.3, 2), (0.7, 1)):
        inputs = processor(text=prompt, audio=[clip(seconds, seed, rate)], return_tensors="pt")
        inputs.pop("text_replacement_offsets", None)
        with torch.no_grad():
            output = model.generate(
                **inputs, max_new_tokens=2, do_sample=False, return_dict_in_generate=True, output_logits=True
            )
        told.append(output.logits[0][0].float().log_softmax(-1).numpy())
    for other in told[1:]:
        assert np.abs(told[0] - other).max() > 0.1


@WITH_PICTURES
def test_prompt_and_chat_template_agree(family: str) -> None:
    """The prompt that tests use is what a chat client gets for the same message, but for the leading bos."""
    processor = AutoProcessor.from_pretrained(checkpoint(family))
    content = [{"type": "text", "text": "Look at "}, {"type": "image"}, {"type": "text", "text": " please."}]
    # Chameleon's processor drops its template on loading; a server is given the file instead.
    template = processor.chat_template or (checkpoint(family) / "chat_template.jinja").read_text()
    rendered = processor.apply_chat_template(
        [{"role": "user", "content": content}], template, add_generation_prompt=True, tokenize=False
    )
    expected = prompt_text(spec(family), Request(("Look at ", WIDE, " please.")))
    assert rendered == (spec(family).bos or "") + expected
    as_text = processor.apply_chat_template([{"role": "user", "content": "Hello"}], template, tokenize=False)
    assert "Hello" in as_text


@EVERY_FAMILY
def test_tokenizer_is_saved_whole(family: str) -> None:
    """The loaded tokenizer gives the ids of the made one, keeps special tokens whole and gives any text back."""
    made, loaded = make_tokenizer(spec(family)), AutoTokenizer.from_pretrained(checkpoint(family))
    text = "Zürich, 東京 ~ \t ok\n\n" + "".join(spec(family).special_tokens) + "\n\n!"
    assert loaded.encode(text) == made.encode(text)
    for token in spec(family).special_tokens:
        assert len(loaded.encode(token, add_special_tokens=False)) == 1
    plain = "Zürich, 東京 ~ \t ok\n\nend"
    assert loaded.decode(loaded.encode(plain, add_special_tokens=False)) == plain
    for name, token in spec(family).named_tokens.items():
        assert getattr(loaded, name) == token
    if spec(family).bos:
        assert loaded.encode("x")[0] == loaded.bos_token_id
    else:
        assert loaded.encode("x") == loaded.encode("x", add_special_tokens=False)


@EVERY_FAMILY
def test_weights_and_sizes(family: str) -> None:
    """float32, untied, small, a head size that vLLM's CPU attention takes, norms near their initial value."""
    folder = checkpoint(family)
    model = load(family)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    assert embedding.data_ptr() != head.data_ptr()
    text = model.config.get_text_config()
    # From the file: a config whose layers differ refuses to name one size for all.
    saved = json.loads((folder / "config.json").read_text())
    saved = saved.get("text_config", saved)
    layers = [saved, *saved.get("per_layer_config", {}).values()]
    head_sizes = {layer["head_dim"] for layer in layers if layer.get("head_dim")}
    assert all(size % 32 == 0 for size in head_sizes or {text.hidden_size // text.num_attention_heads})
    assert 2 <= text.num_hidden_layers <= 6  # more than two where features of several tower layers go to one each
    assert sum(parameter.numel() for parameter in model.parameters()) < 1_000_000
    norms = {
        name: parameter
        for name, parameter in model.named_parameters()
        if name.endswith(NORMS_OF_LAYERS) and "vision" not in name
    }
    assert norms
    for name, parameter in norms.items():
        mean = parameter.mean().item()
        assert min(abs(mean - 1), abs(mean)) < 0.1, name  # near 0 where the model adds the 1 itself, as Gemma's does
    assert model.generation_config.eos_token_id is None


def test_building_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    """Another process with another hash seed builds the same weights and tokenizer."""
    here = build("qwen2_vl", tmp_path / "here")
    program = "import sys, pathlib; from compat.zoo.build import build; build('qwen2_vl', pathlib.Path(sys.argv[1]))"
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "there")], cwd=ROOT, check=True, capture_output=True, timeout=120
    )
    for name in ("model.safetensors", "tokenizer.json"):
        digests = {hashlib.sha256((folder / name).read_bytes()).digest() for folder in (here, tmp_path / "there")}
        assert len(digests) == 1, name


def test_checkpoint_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_BACKEND_ZOO_CACHE", str(tmp_path))
    first = checkpoint("llava")
    assert first.is_relative_to(tmp_path)
    made = (first / "model.safetensors").stat().st_mtime_ns
    assert checkpoint("llava") == first
    assert (first / "model.safetensors").stat().st_mtime_ns == made
    assert [path.name for path in first.parent.iterdir()] == ["llava"], "a half-built folder was left behind"


def test_unknown_family_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"nonesuch.*qwen2_vl"):
        spec("nonesuch")


def test_pictures_are_the_same_every_time() -> None:
    pixels = np.asarray(picture(7, 5, 1))
    assert pixels.shape == (5, 7, 3)
    assert np.array_equal(pixels, np.asarray(picture(7, 5, 1)))
    assert not np.array_equal(pixels, np.asarray(picture(7, 5, 2)))


def test_clips_are_the_same_every_time() -> None:
    samples = clip(0.5, 1)
    assert samples.shape == (8000,)
    assert samples.dtype == np.float32
    assert np.array_equal(samples, clip(0.5, 1))
    assert not np.array_equal(samples, clip(0.5, 2))
    assert clip(0.5, 1, rate=24_000).shape == (12_000,)


@WITH_PICTURES
def test_cases_hold_what_their_names_say(family: str) -> None:
    """Text stands before, between and after pictures; a case's own pictures are new to every cache."""
    by_name = {case.name: case for case in cases(spec(family))}
    assert tuple(by_name) == CASE_NAMES
    seen: dict[Any, str] = {}
    for name, case in by_name.items():
        for request in case.requests():
            assert isinstance(request.parts[0], str)
            assert isinstance(request.parts[-1], str)
            for item in request.items:
                assert seen.setdefault(item, name) == name
    assert not any(request.items for request in by_name["text_only"].requests())
    assert any(request.as_ids for request in by_name["token_ids"].requests())
    if spec(family).headed:
        assert all(len(request.items) <= 1 for case in by_name.values() for request in case.requests())
        assert sum(1 for request in by_name["several_sizes"].requests() for _ in request.items) == 3
        return
    adjacent = next(by_name["adjacent"].requests()).parts
    assert any(isinstance(left, Picture) and isinstance(right, Picture) for left, right in itertools.pairwise(adjacent))
    assert len({(item.width, item.height) for item in next(by_name["several_sizes"].requests()).items}) == 3
    sizes = [(item.width, item.height) for item in next(by_name["interleaved_sizes"].requests()).items]
    assert sizes[0] == sizes[2] != sizes[1]


def test_command_builds_and_reports(tmp_path: Path) -> None:
    """`python -m compat.zoo` builds below `--out`, reports as JSON, and refuses an unknown name with status 2."""
    command = [sys.executable, "-m", "compat.zoo"]
    done = subprocess.run(
        [*command, "llava", "--out", str(tmp_path), "--json"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)
    assert result["family"] == "llava"
    assert (tmp_path / "llava" / "config.json").exists()
    refused = subprocess.run([*command, "nonesuch"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert refused.returncode == 2
    assert "nonesuch" in refused.stderr
