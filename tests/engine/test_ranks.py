"""Two ranks on this machine give what one gives: tensor parallel, by vLLM's own executor.

Pipeline ranks can't be shown on a CPU: vLLM's runner makes the tensors that a later rank receives in its dummy run, which it
leaves out there (`intermediate_tensors`, vLLM 0.32, in-tree classes too).
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
        model, placeholder, ranks = sys.argv[1:]
        llm = LLM(
            model, model_impl="transformers", dtype="float32", max_model_len=1024, max_num_seqs=4, enforce_eager=True,
            limit_mm_per_prompt={"image": 2}, tensor_parallel_size=int(ranks),
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


def ask(directory: Path, family: str, ranks: int) -> list[Answer]:
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
    command = [sys.executable, str(script), str(checkpoint(family)), spec(family).placeholders["image"], str(ranks)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    line = next((line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")), None)
    assert line is not None, done.stdout[-2000:] + done.stderr[-4000:]
    answers: list[Answer] = json.loads(line.removeprefix("ANSWERS "))
    return answers


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks need two cores")
@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl", "gemma3"])
def test_two_tensor_parallel_ranks_answer_as_one(family: str, tmp_path: Path) -> None:
    """M-RoPE; features of several levels; attention both ways."""
    for (tokens, logprobs), (expected, expected_logprobs) in zip(
        ask(tmp_path, family, 2), ask(tmp_path, family, 1), strict=True
    ):
        assert tokens == expected
        assert max(abs(a - b) for a, b in zip(logprobs, expected_logprobs, strict=True)) < 1e-3
