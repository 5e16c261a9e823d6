"""Two ranks on this machine give what one gives: tensor and pipeline parallel, by vLLM's own executor.

Pipeline ranks are compiled: vLLM's runner makes the tensors that a later rank receives in its dummy run, which on a CPU it
leaves out in eager mode (`intermediate_tensors`, vLLM 0.32, in-tree classes too).
"""

import os
from pathlib import Path

import pytest
from children import FOUND, found, run, same

from compat.zoo.registry import spec
from compat.zoo.store import checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.language, pytest.mark.long, pytest.mark.timeout(900)]

ENGINE = """
    import json, sys
    from children import answers, prompts
    from vllm import LLM, SamplingParams
    from hf_backend import plugin

    if __name__ == "__main__":
        plugin.register()
        model, placeholder, way, ranks = sys.argv[1:]
        llm = LLM(
            model, model_impl="transformers", dtype="float32", max_model_len=1024, max_num_seqs=4,
            limit_mm_per_prompt={"image": 2}, enforce_eager=way == "tensor", **{f"{way}_parallel_size": int(ranks)},
        )
        greedy = SamplingParams(temperature=0, max_tokens=8, logprobs=3, ignore_eos=True, detokenize=False)
        print("FOUND", json.dumps(answers(llm.generate(prompts(placeholder), greedy, use_tqdm=False))), flush=True)
"""


# A core a rank: vLLM binds ranks to memory nodes by itself, and this machine may have one.
def environment(ranks: int) -> dict[str, str]:
    cores = sorted(os.sched_getaffinity(0))[:ranks]
    return {"VLLM_CPU_OMP_THREADS_BIND": "|".join(map(str, cores)), "VLLM_ENABLE_V1_MULTIPROCESSING": "1"}


def arguments(family: str, way: str, ranks: int) -> tuple[object, ...]:
    return checkpoint(family), spec(family).placeholders["image"], way, ranks


def hold_to_one_rank(directory: Path, family: str, way: str) -> None:
    """`way` is "tensor" or "pipeline"."""
    several, alone = (
        found(directory, ENGINE, *arguments(family, way, ranks), **environment(ranks)) for ranks in (2, 1)
    )
    assert len(several) == len(alone)
    assert all(map(same, several, alone)), (several, alone)


two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks need two cores")


@two_cores
@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl", "gemma3"])
def test_two_tensor_parallel_ranks_answer_as_one(family: str, tmp_path: Path) -> None:
    """M-RoPE; features of several levels; attention both ways."""
    hold_to_one_rank(tmp_path, family, "tensor")


@two_cores
@pytest.mark.parametrize("family", ["qwen2_vl", "llava"])
def test_two_pipeline_ranks_answer_as_one(family: str, tmp_path: Path) -> None:
    """A later rank has no embeddings to measure anything by; positions with sections, and without."""
    hold_to_one_rank(tmp_path, family, "pipeline")


@two_cores
def test_inputs_for_each_layer_are_refused_on_pipeline_ranks(tmp_path: Path) -> None:
    """Gemma 3n's later layers take inputs that only the first rank can make: refused at start with what to do (C11)."""
    done = run(tmp_path, ENGINE, *arguments("gemma3n", "pipeline", 2), **environment(2))
    assert done.returncode != 0
    assert "found per_layer_inputs, which its layers on all 2 pipeline ranks take" in done.stdout + done.stderr
    assert FOUND not in done.stdout
