"""A tower whose numbers are beyond half precision stops the start, and names the dtype that works."""

import shutil
from pathlib import Path

import pytest
from children import FOUND, run
from safetensors.torch import load_file, save_file

from compat.zoo.store import checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.encoding, pytest.mark.timeout(300)]

ENGINE = """
    import sys
    from vllm import LLM
    from hf_backend import plugin

    if __name__ == "__main__":
        plugin.register()
        LLM(
            sys.argv[1], model_impl="transformers", dtype=sys.argv[2], max_model_len=512, max_num_seqs=2, enforce_eager=True,
            limit_mm_per_prompt={"image": 1},
        )
        print("FOUND true", flush=True)
"""

FACTOR = 1e8


@pytest.mark.parametrize("dtype", ["float16", pytest.param("bfloat16", marks=pytest.mark.long)])
def test_embeddings_beyond_float16(dtype: str, tmp_path: Path) -> None:
    """LLaVA's connector with weights so large that its embeddings are, too; text and tower are as they were."""
    folder = tmp_path / "model"
    shutil.copytree(checkpoint("llava"), folder)
    weights = load_file(folder / "model.safetensors")
    large = [name for name in weights if "multi_modal_projector" in name and name.endswith("weight")]
    assert len(large) == 2
    for name in large:
        weights[name] *= FACTOR**0.5
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    done = run(tmp_path, ENGINE, folder, dtype)
    said = done.stdout + done.stderr
    if dtype == "float16":
        assert done.returncode != 0
        assert "LlavaModel: found embeddings of a small image that are beyond the numbers of float16" in said, said[
            -3000:
        ]
        assert "--dtype bfloat16" in said
        assert FOUND not in done.stdout
    else:
        assert done.returncode == 0, said[-3000:]
