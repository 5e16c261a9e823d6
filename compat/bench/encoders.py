"""`python -m compat.bench.encoders [FAMILY ...] [--compile] [--json FILE]`: encoded pictures a second, four ways in one run.

Takes families of the zoo; asks each one's encoder for 32 small pictures of six sizes in turns: as a step does (*ours*: buckets
without padding), one by one, all padded to the largest in one call (what the HF processor makes of all 32 in one prompt, where
it takes them), and with `--compile` as a step does with compiled encoders. Medians over rounds; of tiny towers on a CPU only ratios
mean something: what a call costs beside its work.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from compat.parity import environment

FAMILIES = ("mistral3", "pixtral", "qwen2_vl", "idefics3", "llava", "internvl")
"""Towers of any size; of any size and packed; of tiles; of one size."""
SIZES = ((32, 32), (48, 32), (32, 48), (64, 32), (48, 48), (64, 48))
PICTURES, ROUNDS = 32, 15
OURS, ALONE, PADDED, COMPILED = "ours", "one by one", "padded", "compiled"

HEAD = """| family | calls, ours | ours, pictures a second | ours / one by one | ours / padded | compiled / eager |
|---|---|---|---|---|---|"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the families that were named."""
    parser = argparse.ArgumentParser(prog="python -m compat.bench.encoders", description=__doc__)
    parser.add_argument("families", nargs="*", default=list(FAMILIES), metavar="FAMILY")
    parser.add_argument("--compile", action="store_true", help="also with compiled encoders (half a minute each)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured to this file, too")
    options = parser.parse_args(arguments)
    spawn = multiprocessing.get_context("spawn")
    found: list[dict[str, Any]] = []
    print(HEAD, flush=True)
    for family in options.families:
        # A process each: an engine can't be ended in the one that it runs in.
        with spawn.Pool(1) as pool:
            told = pool.apply(measure, (family, options.compile))
        found.append(told)
        print(row(told), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def row(told: dict[str, Any]) -> str:
    """A line of the table."""
    seconds = {way: statistics.median(of_way) for way, of_way in told["seconds"].items()}

    def ratio(slow: str, fast: str) -> str:
        if slow not in seconds or fast not in seconds:
            return ""
        ratios = [one / other for one, other in zip(told["seconds"][slow], told["seconds"][fast], strict=True)]
        return f"{statistics.median(ratios):.2f}"

    cells = (told["family"], told["calls"], f"{PICTURES / seconds[OURS]:.0f}")
    rest = (ratio(ALONE, OURS), ratio(PADDED, OURS), ratio(OURS, COMPILED))
    return f"| {' | '.join(map(str, (*cells, *rest)))} |"


def measure(family: str, compiles: bool) -> dict[str, Any]:
    """Seconds of each round, by way."""
    if compiles:
        os.environ["TORCHDYNAMO_DISABLE"] = "0"
    environment.prepare()
    from compat.parity import engine

    llm = engine.start(family, engine.OURS)
    (told,) = llm.apply_model(_rounds_compiled if compiles else _rounds)
    return {"family": family, **told}


def _rounds_compiled(model: Any) -> dict[str, Any]:
    return _rounds(model, compiles=True)


def _rounds(model: Any, *, compiles: bool = False) -> dict[str, Any]:
    import torch

    from compat.encoders import counted
    from hf_backend.check.engine import embed
    from hf_backend.probe.samples import picture

    pictures = [picture(*SIZES[number % len(SIZES)], seed=number) for number in range(PICTURES)]
    alone = model._info.alone("image")
    items = [alone(one, {}) for one in pictures]
    ways: dict[str, Callable[[], Any]] = {
        OURS: lambda: torch.cat(list(embed(model, "image", items))),
        ALONE: lambda: torch.cat([embed(model, "image", [item])[0] for item in items]),
    }
    with torch.inference_mode():
        with counted(model, "image") as calls:
            expected = ways[OURS]()
        if (padded := _padded(model, pictures)) is not None:
            ways[PADDED] = padded
        for name, way in ways.items():
            found = way()
            # Padded embeddings of towers that see the padding are others, but as many.
            assert found.shape == expected.shape, (name, found.shape, expected.shape)
        seconds: dict[str, list[float]] = {}
        if compiles:
            # Twice: a compiled module stays so. Eager and compiled take turns by the modules' `forward`.
            eager = _compile(model)
            ways[COMPILED] = ways[OURS]
        for _ in range(ROUNDS):
            for name, way in ways.items():
                if compiles:
                    for module, both in eager.items():
                        module.forward = both[name == COMPILED]
                way()
                started = time.perf_counter()
                way()
                seconds.setdefault(name, []).append(time.perf_counter() - started)
    return {"calls": len(calls), "seconds": seconds}


def _compile(model: Any) -> dict[Any, tuple[Any, Any]]:
    """Compile the encoder; gives each compiled module with its eager and its compiled `forward`."""
    from hf_backend.encoding.compile import CompiledCall, compile_encoder
    from hf_backend.encoding.items import encoder_item

    encoder, device = model._encoders["image"], next(model.model.parameters()).device
    probes = [encoder_item(item) for item in model._info.probe_items("image")]
    compile_encoder(model.model, model.model.get_decoder(), encoder.groups(probes, device), "image")
    modules = [module for module in model.model.modules() if isinstance(module.forward, CompiledCall)]
    return {module: (module.forward.eager, module.forward) for module in modules}


def _padded(model: Any, pictures: Sequence[Any]) -> Callable[[], Any] | None:
    """All pictures in one call as the HF processor pads them; None where it doesn't pad, or nothing takes what it gives."""
    from hf_backend.probe.alone import process

    profile = model._profile.modalities["image"]
    features = model._encoders["image"]._features
    if features is None or all(layout.exact for layout in profile.layouts.values()):
        return None
    alone = model._info.alone("image")
    text = " ".join([alone.placeholder] * len(pictures))
    made = process(model._info, alone.modality, alone.strategy, text, pictures, {})
    fields = {name: value for name, value in made.fields.items() if name not in profile.text_fields}
    device = next(model.model.parameters()).device
    return lambda: features(fields, device)


if __name__ == "__main__":
    sys.exit(main())
