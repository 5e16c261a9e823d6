"""Two ranks on this machine give what one gives: tensor and pipeline parallel, by vLLM's own executor.

Pipeline ranks are compiled: vLLM's runner makes the tensors that a later rank receives in its dummy run, which on a CPU it
leaves out in eager mode (`intermediate_tensors`, vLLM 0.32, in-tree classes too).
"""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from compat.zoo.registry import spec
from compat.zoo.store import checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.language, pytest.mark.long, pytest.mark.timeout(900)]

ENGINE = """
    import json, sys
    from vllm import LLM, SamplingParams
    from hf_backend import plugin
    from hf_backend.probe.samples import picture

    if __name__ == "__main__":
        plugin.register()
        model, placeholder, way, ranks = sys.argv[1:]
        llm = LLM(
            model, model_impl="transformers", dtype="float32", max_model_len=1024, max_num_seqs=4,
            limit_mm_per_prompt={"image": 2}, enforce_eager=way == "tensor", **{f"{way}_parallel_size": int(ranks)},
        )
        prompts = [
            {"prompt": f"{placeholder} what is it?", "multi_modal_data": {"image": [picture(112, 84, seed=1)]}},
            {"prompt": f"a {placeholder} and {placeholder}", "multi_modal_data": {"image": [picture(50, 90), picture(90, 50)]}},
            {"prompt": "no picture at all"},
        ]
        greedy = SamplingParams(temperature=0, max_tokens=8, logprobs=3, ignore_eos=True, detokenize=False)
        completions = [output.outputs[0] for output in llm.generate(prompts, greedy, use_tqdm=False)]
        answers = [
            [list(one.token_ids), [step[token].logprob for token, step in zip(one.token_ids, one.logprobs)]]
            for one in completions
        ]
        print("ANSWERS", json.dumps(answers), flush=True)
"""

Answer = tuple[list[int], list[float]]


def run(directory: Path, family: str, way: str, ranks: int) -> "subprocess.CompletedProcess[str]":
    """An engine of `ranks` ranks, `way` "tensor" or "pipeline" parallel, asked in a process of its own."""
    script = directory / "engine.py"
    script.write_text(textwrap.dedent(ENGINE))
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        # A core a rank: vLLM binds ranks to memory nodes by itself, and this machine may have one.
        "VLLM_CPU_OMP_THREADS_BIND": "|".join(map(str, sorted(os.sched_getaffinity(0))[:ranks])),
    }
    command = [
        sys.executable,
        str(script),
        str(checkpoint(family)),
        spec(family).placeholders["image"],
        way,
        str(ranks),
    ]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)


def ask(directory: Path, family: str, way: str, ranks: int) -> list[Answer]:
    done = run(directory, family, way, ranks)
    line = next((line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")), None)
    assert line is not None, done.stdout[-2000:] + done.stderr[-4000:]
    answers: list[Answer] = json.loads(line.removeprefix("ANSWERS "))
    return answers


def hold_to_one_rank(directory: Path, family: str, way: str) -> None:
    for (tokens, logprobs), (expected, expected_logprobs) in zip(
        ask(directory, family, way, 2), ask(directory, family, way, 1), strict=True
    ):
        assert tokens == expected
        assert max(abs(a - b) for a, b in zip(logprobs, expected_logprobs, strict=True)) < 1e-3


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
    done = run(tmp_path, "gemma3n", "pipeline", 2)
    assert done.returncode != 0
    assert "found per_layer_inputs, which its layers on all 2 pipeline ranks take" in done.stdout + done.stderr
    assert "ANSWERS" not in done.stdout
