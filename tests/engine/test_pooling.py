"""The embedding class in an engine: a prompt's embedding is the last token's hidden state as transformers has it."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from compat.zoo.registry import spec
from compat.zoo.store import checkpoint
from hf_backend.probe.samples import picture

pytestmark = [pytest.mark.engine, pytest.mark.language, pytest.mark.long, pytest.mark.timeout(600)]

ENGINE = """
    import json, sys
    from vllm import LLM
    from hf_backend import plugin
    from hf_backend.probe.samples import picture

    if __name__ == "__main__":
        plugin.register()
        model, placeholder = sys.argv[1:]
        llm = LLM(
            model, model_impl="transformers", runner="pooling", convert="embed", dtype="float32", max_model_len=1024,
            max_num_seqs=4, enforce_eager=True, limit_mm_per_prompt={"image": 2},
        )
        # vLLM's adapter makes a class of ours into one that embeds.
        (bases,) = llm.apply_model(lambda model: [base.__module__ for base in type(model).__mro__])
        prompts = [
            {"prompt": f"see {placeholder} now", "multi_modal_data": {"image": [picture(112, 84, seed=1)]}},
            {"prompt": f"see {placeholder} now", "multi_modal_data": {"image": [picture(112, 84, seed=2)]}},
        ]
        outputs = llm.embed(prompts, use_tqdm=False)
        print("FOUND", json.dumps([bases, [output.outputs.embedding for output in outputs]]), flush=True)
"""


@pytest.mark.parametrize("family", ["qwen2_vl", "idefics3"])
def test_an_embedding_is_the_last_hidden_state(family: str, tmp_path: Path) -> None:
    placeholder = spec(family).placeholders["image"]
    script = tmp_path / "engine.py"
    script.write_text(textwrap.dedent(ENGINE))
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    command = [sys.executable, str(script), str(checkpoint(family)), placeholder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    line = next((line for line in done.stdout.splitlines() if line.startswith("FOUND ")), None)
    assert line is not None, done.stdout[-2000:] + done.stderr[-4000:]
    bases, found = json.loads(line.removeprefix("FOUND "))
    assert "hf_backend.models" in bases

    from transformers import AutoModel, AutoProcessor

    processor = AutoProcessor.from_pretrained(checkpoint(family))
    model = AutoModel.from_pretrained(checkpoint(family), dtype=torch.float32).eval()
    for seed, embedding in enumerate(found, start=1):
        inputs = processor(text=f"see {placeholder} now", images=[picture(112, 84, seed=seed)], return_tensors="pt")
        with torch.inference_mode():
            last = model(**inputs).last_hidden_state[0, -1]
        expected = torch.nn.functional.normalize(last, dim=0)
        assert torch.allclose(torch.tensor(embedding), expected, atol=1e-4)
    assert found[0] != found[1], "another picture has to give another embedding"
