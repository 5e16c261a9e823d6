"""`python -m compat.matrix [--quick] [--column] [--pair VLLM,TRANSFORMERS ...] [--families F,...] [--store] ...`.

Runs what isn't kept from the same sources yet, prints a bar with the time left, then the table, what isn't right, and what
became worse. Exit status 1 if something that is stored as right isn't any more, or a pair is worse than expected.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from compat.matrix import data, merge, plan, store
from compat.matrix.records import CellResult, Pair
from compat.matrix.run import run_cell
from compat.zoo import families as zoo_families


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; returns the exit status."""
    options = _options(arguments)
    pairs = tuple(Pair(*text.split(",")) for text in options.pair) or (data.corners() if options.quick else data.grid())
    core = tuple(options.families.split(",")) if options.families else data.CORE
    if unknown := sorted(set(core) - set(zoo_families())):
        raise SystemExit(f"found unknown families {', '.join(unknown)}; expected some of {', '.join(zoo_families())}")
    if options.draw_only:
        return _show(store.stored(), options)
    sources = plan.sources_key(options.package)
    wanted = dict.fromkeys(pairs, core)
    if options.column:
        wanted[data.COLUMN] = zoo_families()
    results = _run(wanted, sources, package=options.package, jobs=options.jobs)
    print(_table(results, core))
    for line in merge.problems(results):
        print(line)
    worse = [f"worse than stored: {line}" for line in merge.regressions(results, store.stored())]
    for is_worse, line in merge.surprises(results, core):
        print(f"not as expected: {line}")
        worse += [line] if is_worse else []
    for line in worse:
        print(line)
    if options.store:
        store.commit(results)
        _say(f"wrote {store.STORED}")
    _show(store.stored() if options.store else results, options)
    print(f"{len(results)} pairs, {len(worse)} worse than stored or expected")
    return 1 if worse else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat.matrix", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the corners of the grid: what CI runs")
    parser.add_argument("--column", action="store_true", help=f"also all families of the zoo on {data.COLUMN}")
    parser.add_argument(
        "--pair", action="append", default=[], metavar="VLLM,TRANSFORMERS", help="only this pair; again for more"
    )
    parser.add_argument("--families", help=f"comma-separated, in place of {','.join(data.CORE)}")
    parser.add_argument("--jobs", type=int, default=1, help="engines at once within a pair (default: 1)")
    parser.add_argument(
        "--package",
        type=Path,
        metavar="DIR",
        help="a folder with an installed hf_backend to run in place of this tree's",
    )
    parser.add_argument("--store", action="store_true", help="write the results over those stored in the repository")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table to this file")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="write the heat map to this file (needs matplotlib)"
    )
    parser.add_argument("--draw-only", action="store_true", help="run nothing: table and picture of the stored results")
    return parser.parse_args(arguments)


def _run(
    wanted: Mapping[Pair, Sequence[str]], sources: str, *, package: Path | None, jobs: int
) -> dict[Pair, CellResult]:
    kept = store.kept()
    waiting = [pair for pair, families in wanted.items() if plan.left([pair], kept, families, sources)]
    _say(f"{len(wanted)} pairs, {len(wanted) - len(waiting)} of them kept from an earlier run of the same sources")
    started = time.perf_counter()
    for done, pair in enumerate(waiting):
        _say(f"{plan.progress(done, len(waiting), time.perf_counter() - started)}  {pair} ...")
        families = plan.families_left(pair, kept, wanted[pair], sources)
        result = store.keep(run_cell(pair, families, sources=sources, package=package, jobs=jobs, say=_say))
        kept[pair] = result
        refused = "; pip refuses it" if result.pip else ""
        _say(f"    {result.outcome.value} in {result.seconds:.0f} s{refused}")
        for line in merge.problems({pair: result}):
            _say(f"    {line}")
    _say(plan.progress(len(waiting), len(waiting), time.perf_counter() - started))
    return {pair: store.only(kept[pair], families) for pair, families in wanted.items()}


def _table(results: Mapping[Pair, CellResult], core: Sequence[str]) -> str:
    """The grid by the families that every pair is asked, and all families of the pair that was asked more."""
    text = merge.markdown(_of(results, core), data.VLLM, data.TRANSFORMERS)
    column = results.get(data.COLUMN)
    if column is not None and any(family.family not in core for family in column.families):
        text += f"\n\nAll families on {data.COLUMN}:\n\n{merge.column(column)}"
    return text


def _of(results: Mapping[Pair, CellResult], core: Sequence[str]) -> dict[Pair, CellResult]:
    return {pair: store.only(result, core) for pair, result in results.items()}


def _show(results: Mapping[Pair, CellResult], options: argparse.Namespace) -> int:
    """Write table and picture where they were asked for."""
    if options.markdown:
        options.markdown.write_text(_table(results, data.CORE) + "\n")
        _say(f"wrote {options.markdown}")
    if options.picture:
        from compat.matrix.picture import draw

        draw(_of(results, data.CORE), data.VLLM, data.TRANSFORMERS, options.picture)
        _say(f"wrote {options.picture}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
