"""A LoRA adapter of the text model, on prompts with pictures: the answers are those of the checkpoint with the adapter merged
into its weights, and another than without it.

Never both in one step: vLLM's CPU kernels take "no adapter" (-1) for the last one there (vLLM 0.32, in-tree classes too)."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from children import Answer, found, same
from safetensors.torch import load_file, save_file

from compat.zoo.registry import spec
from compat.zoo.store import checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.language, pytest.mark.timeout(400)]

FAMILIES = ["qwen2_vl", pytest.param("idefics3", marks=pytest.mark.long)]
RANK, ALPHA = 8, 16
PROJECTIONS = ("q_proj", "v_proj", "down_proj")

ENGINE = """
    import json, sys
    from children import answers, prompts
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest
    from hf_backend import plugin

    if __name__ == "__main__":
        plugin.register()
        model, adapter, placeholder = sys.argv[1:]
        llm = LLM(
            model, model_impl="transformers", dtype="float32", max_model_len=1024, max_num_seqs=4, enforce_eager=True,
            limit_mm_per_prompt={"image": 2}, enable_lora=bool(adapter), max_lora_rank=8,
        )
        greedy = SamplingParams(temperature=0, max_tokens=8, logprobs=3, ignore_eos=True, detokenize=False)
        request = LoRARequest("adapter", 1, adapter) if adapter else None
        rounds = [[request] * 3, [None] * 3] if adapter else [[None] * 3]
        asked = prompts(placeholder)
        found = [
            answers(llm.generate(asked, greedy, use_tqdm=False, lora_request=requests if adapter else None))
            for requests in rounds
        ]
        print("FOUND", json.dumps(found))
"""


def ask(directory: Path, model: Path, adapter: Path | None, family: str) -> list[list[Answer]]:
    """Rounds of answers from an engine in a child process."""
    rounds: list[list[Answer]] = found(directory, ENGINE, model, adapter or "", spec(family).placeholders["image"])
    return rounds


def make_adapter(directory: Path, base: Path) -> tuple[Path, Path]:
    """A random adapter in PEFT's format for the text model of `base`, and a copy of `base` with it merged in."""
    weights = load_file(base / "model.safetensors")
    generator = torch.Generator().manual_seed(7)
    adapter: dict[str, torch.Tensor] = {}
    for name in sorted(weights):
        module = name.removesuffix(".weight")
        if module.rpartition(".")[2] not in PROJECTIONS or "vis" in module:
            continue
        rows, columns = weights[name].shape
        a = torch.randn(RANK, columns, generator=generator) * columns**-0.5
        b = torch.randn(rows, RANK, generator=generator) * 0.2
        adapter[f"base_model.model.{module}.lora_A.weight"] = a
        adapter[f"base_model.model.{module}.lora_B.weight"] = b
        weights[name] = weights[name] + ALPHA / RANK * (b @ a)
    assert adapter, sorted(weights)
    merged, adapted = directory / "merged", directory / "adapter"
    shutil.copytree(base, merged)
    save_file(weights, merged / "model.safetensors", metadata={"format": "pt"})
    adapted.mkdir()
    save_file(adapter, adapted / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "target_modules": list(PROJECTIONS), "bias": "none"}
    (adapted / "adapter_config.json").write_text(json.dumps(config))
    return adapted, merged


@pytest.mark.parametrize("family", FAMILIES)
def test_an_adapter_of_the_text_model_answers_as_merged_weights(family: str, tmp_path: Path) -> None:
    base = checkpoint(family)
    adapter, merged = make_adapter(tmp_path, base)
    (expected,) = ask(tmp_path, merged, None, family)
    adapted, without = ask(tmp_path, base, adapter, family)
    for number in range(3):
        assert not same(without[number], expected[number]), "the adapter has to change the answer, or nothing is shown"
        assert same(adapted[number], expected[number])
