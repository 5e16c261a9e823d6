"""C10: a compiled encoder gives what it gives eagerly, and twelve sizes of which it saw none compile nothing. An engine started as
its users start it, with `compile_mm_encoder`, answers as `generate` does (C12)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from children import ROOT, found

from compat.zoo.store import checkpoint
from hf_backend.check.compare import TOLERANCE

pytestmark = [pytest.mark.engine, pytest.mark.encoding, pytest.mark.timeout(600)]

ENGINE = """
    import functools, json, sys
    from vllm import LLM
    from hf_backend import plugin
    from hf_backend.check import compiled

    if __name__ == "__main__":
        plugin.register()
        model, modality = sys.argv[1:]
        llm = LLM(
            model, model_impl="transformers", dtype="float32", max_model_len=512, max_num_seqs=2, enforce_eager=True,
            limit_mm_per_prompt={modality: 1},
        )
        print("FOUND", json.dumps(llm.apply_model(functools.partial(compiled.compare, modality=modality))[0]))
"""

TOWERS = [
    pytest.param("idefics3", "image", {"Idefics3VisionTransformer"}, id="idefics3: SigLIP, whole"),
    pytest.param(
        "qwen2_vl", "image", {"VisionMlp", "PatchMerger"}, id="qwen2_vl: around its attention", marks=pytest.mark.long
    ),
    pytest.param(
        "mistral3", "image", {"PixtralAttention", "PixtralMLP"}, id="mistral3: Pixtral's layers", marks=pytest.mark.long
    ),
    pytest.param(
        "llava", "image", {"CLIPVisionModel", "LlavaMultiModalProjector"}, id="llava: CLIP", marks=pytest.mark.long
    ),
    pytest.param("qwen2_audio", "audio", {"Qwen2AudioEncoder"}, id="qwen2_audio", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("family", "modality", "kinds"), TOWERS)
def test_c10_compiled_equals_eager_and_new_sizes_compile_nothing(
    family: str, modality: str, kinds: set[str], tmp_path: Path
) -> None:
    result = found(tmp_path, ENGINE, checkpoint(family), modality)
    assert set(result["kinds"]) == kinds
    assert result["graphs"] <= 2 * len(kinds), "one graph for one item and one for several, whatever their sizes"
    assert result["failed"] is None
    assert result["difference"] < 1e-4


CASES = (
    "one_image",
    "text_only",
    "other_size",
    "interleaved_sizes",
    "together",
    "one_clip",
    "odd_lengths",
    "clips_together",
)


@pytest.mark.parametrize(
    "family",
    [
        "idefics3",
        pytest.param("qwen2_5_vl", marks=pytest.mark.long),
        pytest.param("gemma4", marks=pytest.mark.long),
        pytest.param("qwen2_audio", marks=pytest.mark.long),
    ],
)
def test_c10_an_engine_with_compiled_encoders_answers_as_generate(family: str, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [sys.executable, "-m", "compat.parity.steps", family, "512", "--compiled", "--encoders"]
    command += ["--case", ",".join(CASES), "--json", str(results)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert results.exists(), done.stdout[-2000:] + done.stderr[-4000:]
    told = json.loads(results.read_text())
    assert told["compiled_modules"] > 0
    records = {name: record for name, records in told["cases"].items() for record in records}
    assert records
    assert not {name: record["wrong"] for name, record in records.items() if record["wrong"]}
    assert max(record["difference"] for record in records.values()) <= TOLERANCE
