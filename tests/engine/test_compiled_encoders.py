"""C10: a compiled encoder gives what it gives eagerly, and twelve sizes of which it saw none compile nothing."""

from pathlib import Path

import pytest
from children import found

from compat.zoo.store import checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.encoding, pytest.mark.timeout(600)]

ENGINE = """
    import json, sys
    import torch
    from vllm import LLM
    from hf_backend import plugin
    from hf_backend.encoding import compile as compiling
    from hf_backend.encoding.items import encoder_item
    from hf_backend.probe.samples import clip, picture

    modality = sys.argv[2]

    def compare(model):
        encoder, device, info = model._encoders[modality], torch.device("cpu"), model._info
        probes = [encoder_item(item) for item in info.probe_items(modality)]
        sizes = [3000 + 1700 * n if modality == "audio" else (60 + 17 * n, 200 - 11 * n) for n in range(12)]
        alone = info.alone(modality)
        items = [encoder_item(alone(clip(size) if modality == "audio" else picture(*size), {})) for size in sizes]
        with torch.inference_mode():
            eager = [encoder([item], device) for item in items]
            before = compiling.num_graphs()
            text_model = model.model.get_decoder()
            compiled = compiling.compile_encoder(model.model, text_model, encoder.groups(probes, device), modality)
            graphs = compiling.num_graphs() - before
            compiling.UNSEEN = "fail_on_recompile"
            found = [encoder([item], device) for item in items]
        kinds = {type(each).__name__ for each in model.model.modules() if isinstance(each.forward, compiling.CompiledCall)}
        differences = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, eager)]
        return {"compiled": compiled, "graphs": graphs, "kinds": sorted(kinds), "differences": differences}

    if __name__ == "__main__":
        plugin.register()
        llm = LLM(
            sys.argv[1], model_impl="transformers", dtype="float32", max_model_len=512, max_num_seqs=2, enforce_eager=True,
            limit_mm_per_prompt={modality: 1},
        )
        print("FOUND", json.dumps(llm.apply_model(compare)[0]))
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
    assert len(result["differences"]) == 12
    assert max(result["differences"]) < 1e-4
