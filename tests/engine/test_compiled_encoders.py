"""C10: a compiled encoder gives what it gives eagerly, and twelve sizes of which it saw none compile nothing."""

from pathlib import Path

import pytest
from children import found

from compat.zoo.store import checkpoint

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
