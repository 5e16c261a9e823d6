"""`python -m compat.encoders [FAMILY ...] [--json FILE]`: C9 for every tower of the zoo, as a Markdown table on stdout.

A line a family and modality: which way the encoder runs, how many calls five items of four sizes take in a step, and the
largest difference between an item's embeddings alone and beside the others: in any order, and in chunks of any size. Relative to
the largest embedding, float32. `docs/encoders.md` holds its output. An engine a family.
"""

import argparse
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compat.parity import environment

environment.prepare()

from compat.expected import RIGHT  # noqa: E402  (after the environment)
from compat.parity import engine, preload  # noqa: E402
from compat.parity.children import Task, run_forked  # noqa: E402
from compat.zoo.registry import families  # noqa: E402

TOLERANCE = 1e-5
"""Largest relative difference that is rounding: a batch of another size is another order of additions."""

HEAD = """| family | modality | way | embeddings | calls for 5 | C9 difference | share a call |
|---|---|---|---|---|---|---|"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the families named, or all; 1 if one failed or an item's embeddings hang on its neighbours."""
    parser = argparse.ArgumentParser(prog="python -m compat.encoders", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to this file, too")
    parser.add_argument("--jobs", type=int, default=2, help="engines at once (default: 2)")
    options = parser.parse_args(arguments)
    known = sorted({family for right in RIGHT.values() for family in right})
    wanted = options.families or known
    if unknown := sorted(set(wanted) - set(families())):
        parser.error(f"found unknown families {', '.join(unknown)}; expected some of {', '.join(families())}")
    preload.import_engine()
    tasks = [Task(family, lambda family=family: measure(family)) for family in wanted]  # type: ignore[misc]
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="encoders-") as logs:
        for number, outcome in enumerate(run_forked(tasks, logs=Path(logs), jobs=options.jobs), start=1):
            print(f"{number}/{len(tasks)} {outcome.task.name}: {outcome.seconds:.0f} s", file=sys.stderr, flush=True)
            if outcome.error is None:
                rows += outcome.result
            else:
                failed.append(f"{outcome.task.name}: {outcome.error}")
    preload.release()
    rows.sort(key=lambda row: (row["family"], row["modality"]))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print(HEAD)
    for row in rows:
        cells = [row[name] for name in ("family", "modality", "way", "embeddings", "calls")]
        print(f"| {' | '.join(map(str, cells))} | {row['difference']:.1e} | {'yes' if row['joinable'] else 'no'} |")
    wrong = [
        f"{row['family']} {row['modality']}: {row['difference']:.1e}" for row in rows if row["difference"] > TOLERANCE
    ]
    for line in failed + wrong:
        print(f"not right: {line}", file=sys.stderr)
    return 1 if failed or wrong else 0


def measure(family: str) -> list[dict[str, Any]]:
    """A row for each modality that an engine of `family` serves."""
    llm = engine.start(family, engine.OURS)
    (rows,) = llm.apply_model(rows_of)
    return [{"family": family, **row} for row in rows]


def rows_of(model: Any) -> list[dict[str, Any]]:
    """What is measured of one model, for each of its encoders."""
    import torch

    rows = []
    for modality, encoder in model._encoders.items():
        items = step_items(model._info, modality)
        with torch.inference_mode():
            alone = [_embed(model, modality, [item])[0] for item in items]
            with counted(model, modality) as calls:
                _embed(model, modality, items)
            worst = 0.0
            for order, mib in itertools.product(((0, 1, 2, 3, 4), (4, 2, 0, 3, 1)), ("1024", "0.05", "0.000001")):
                os.environ["HF_BACKEND_ENCODER_MIB"] = mib
                found = _embed(model, modality, [items[index] for index in order])
                for index, rows_found in zip(order, found, strict=True):
                    scale = float(alone[index].abs().max()) or 1.0
                    worst = max(worst, float((rows_found - alone[index]).abs().max()) / scale)
            os.environ.pop("HF_BACKEND_ENCODER_MIB")
        rows.append(
            {
                "modality": modality,
                "way": encoder.way,
                "embeddings": "+".join(str(len(each)) for each in alone),
                "calls": len(calls),
                "difference": worst,
                "joinable": encoder.joinable,
            }
        )
    return rows


def step_items(info: Any, modality: str) -> list[Any]:
    """Five items of four sizes, processed."""
    from hf_backend.probe.parts import sampling_rate
    from hf_backend.probe.samples import clip, metadata, picture, video

    alone = info.alone(modality)
    rate = sampling_rate(info.get_hf_processor())
    if modality == "audio":
        given: list[Any] = [clip(int(s * rate), seed) for seed, s in enumerate((1.3, 0.4, 2.0, 1.3, 0.7))]
    elif modality == "video":
        shapes = (((112, 84), 4), ((64, 64), 2), ((224, 112), 8), ((112, 84), 4), ((90, 150), 3))
        given = [(video(*size, frames=n, seed=seed), metadata(n)) for seed, (size, n) in enumerate(shapes)]
    else:
        shapes_of_pictures = ((112, 84), (64, 64), (224, 392), (112, 84), (300, 90))
        given = [picture(*size, seed=seed) for seed, size in enumerate(shapes_of_pictures)]
    return [alone(item, {}) for item in given]


@contextmanager
def counted(model: Any, modality: str) -> Iterator[list[int]]:
    """The number of items of each encoder call made inside."""
    encoder = model._encoders[modality]
    calls: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(encoder, name)

        def __call__(self, items: Sequence[Any], device: Any) -> Any:
            calls.append(len(items))
            return encoder(items, device)

    model._encoders[modality] = Counting()
    try:
        yield calls
    finally:
        model._encoders[modality] = encoder


def _embed(model: Any, modality: str, items: Sequence[Any]) -> list[Any]:
    from hf_backend.check.engine import embed

    found: list[Any] = embed(model, modality, items)
    return found


if __name__ == "__main__":
    sys.exit(main())
