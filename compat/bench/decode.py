"""`python -m compat.bench.decode PEER [FAMILY]`: decoded tokens a second, text prompts, one peer an engine.

Takes a peer (ours, in-tree, native); prints the median of several runs. Tiny models on a CPU: only ratios mean something,
and they are those of what runs around the layers.
"""

import statistics
import sys
import time

from compat.parity import environment

environment.prepare()

from compat.parity import engine  # noqa: E402  (after the environment)
from compat.zoo import checkpoint  # noqa: E402

REQUESTS, TOKENS, RUNS = 8, 128, 5


def main(peer: str, family: str = "qwen2_vl") -> None:
    """Decode `RUNS` times `REQUESTS` requests of `TOKENS` tokens and say how many a second."""
    engine.choose_peer(peer)
    from vllm import LLM, SamplingParams

    llm = LLM(
        model=str(checkpoint(family)),
        model_impl="vllm" if peer == engine.NATIVE else "transformers",
        dtype="float32",
        enforce_eager=True,
        max_model_len=2048,
        max_num_seqs=REQUESTS,
        seed=0,
        disable_log_stats=True,
    )
    parameters = SamplingParams(temperature=0.0, max_tokens=TOKENS, ignore_eos=True, detokenize=False)
    prompts = [f"Say number {number}" for number in range(REQUESTS)]
    llm.generate(prompts, parameters, use_tqdm=False)
    rates = []
    for _ in range(RUNS):
        start = time.perf_counter()
        llm.generate(prompts, parameters, use_tqdm=False)
        rates.append(REQUESTS * TOKENS / (time.perf_counter() - start))
    print(f"{family} {peer}: {statistics.median(rates):.0f} tokens a second (median of {RUNS})", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
