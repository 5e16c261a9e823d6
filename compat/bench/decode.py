"""`python -m compat.bench.decode [FAMILY ...] [--peer ours,in-tree,native] [--compiled] [--profile]`: decoded tokens a second.

Starts one engine a peer on a family's tiny checkpoint, each in a process of its own, and asks them in turns, text prompts only:
what else the machine does falls on all of them. Prints medians, and each round's rate of ours by that of another peer, as
median and quartiles. Tiny models on a CPU: only ratios mean something, and they are those of what runs around the layers.
`--profile` prints where a peer's time went, by function, instead.
"""

import argparse
import cProfile
import multiprocessing
import os
import pstats
import statistics
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from compat.parity import environment

REQUESTS, TOKENS, ROUNDS = 8, 128, 15
FAMILIES = ("qwen2_vl", "llava", "gemma3n", "qwen3_vl", "gemma3")
FUNCTIONS = 45
"""Lines of a profile."""


def serve(pipe: Connection, peer: str, family: str, compiled: bool) -> None:
    """A child: start an engine, then answer `False` with a rate, `True` with a profile, until the other end closes."""
    if compiled:
        os.environ["TORCHDYNAMO_DISABLE"] = "0"
    environment.prepare()
    from compat.parity import engine
    from compat.zoo import checkpoint

    engine.choose_peer(peer)
    from vllm import LLM, SamplingParams

    llm = LLM(
        model=str(checkpoint(family)),
        model_impl="vllm" if peer == engine.NATIVE else "transformers",
        dtype="float32",
        enforce_eager=not compiled,
        max_model_len=2048,
        max_num_seqs=REQUESTS,
        seed=0,
        disable_log_stats=True,
    )
    parameters = SamplingParams(temperature=0.0, max_tokens=TOKENS, ignore_eos=True, detokenize=False)
    prompts: list[Any] = [f"Say number {number}" for number in range(REQUESTS)]
    llm.generate(prompts, parameters, use_tqdm=False)
    pipe.send("ready")
    while True:
        try:
            profiled = pipe.recv()
        except EOFError:
            return
        profile = cProfile.Profile()
        start = time.perf_counter()
        if profiled:
            profile.runcall(llm.generate, prompts, parameters, use_tqdm=False)
            pstats.Stats(profile).sort_stats("tottime").print_stats(FUNCTIONS).sort_stats("cumulative").print_stats(
                "hf_backend|transformers", FUNCTIONS
            )
        else:
            llm.generate(prompts, parameters, use_tqdm=False)
        pipe.send(REQUESTS * TOKENS / (time.perf_counter() - start))


def measure(family: str, peers: Sequence[str], *, compiled: bool, profiled: bool) -> dict[str, list[float]]:
    """Peer to tokens a second, round by round; peers whose engine doesn't start are left out."""
    spawn = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for peer in peers:
        pipe, theirs = spawn.Pipe()
        spawn.Process(target=serve, args=(theirs, peer, family, compiled), daemon=True).start()
        theirs.close()
        try:
            # One after the other: two that start at once would each take the other's memory for its own.
            pipe.recv()
            pipes[peer] = pipe
        except EOFError:
            print(f"{family} {peer}: its engine doesn't start", flush=True)
    rates: dict[str, list[float]] = {peer: [] for peer in pipes}
    for _ in range(1 if profiled else ROUNDS):
        for peer, pipe in pipes.items():
            pipe.send(profiled)
            rates[peer].append(pipe.recv())
    for pipe in pipes.values():
        pipe.close()
    return rates


def line(family: str, rates: dict[str, list[float]]) -> str:
    """What a person reads of one family."""
    parts = [f"{peer} {statistics.median(of_peer):.0f}" for peer, of_peer in rates.items()]
    first, *others = rates
    for peer in others:
        ratios = [one / other for one, other in zip(rates[first], rates[peer], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        parts.append(f"{first}/{peer} {middle:.2f} ({low:.2f} to {high:.2f})")
    return f"{family}: " + ", ".join(parts)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m compat.bench.decode", description=__doc__)
    parser.add_argument("family", nargs="*", default=list(FAMILIES))
    parser.add_argument("--peer", default="ours,in-tree,native")
    parser.add_argument("--compiled", action="store_true", help="without --enforce-eager")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    for family in options.family:
        rates = measure(family, options.peer.split(","), compiled=options.compiled, profiled=options.profile)
        if rates and not options.profile:
            print(line(family, rates), flush=True)


if __name__ == "__main__":
    main()
