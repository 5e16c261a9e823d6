"""Results on disk: one file a pair in the cache while a run goes on, one file for all in the repository.

Takes results; gives them back. Not for judging them (`compat.matrix.merge`).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, replace
from pathlib import Path

from packaging.version import Version

from compat.matrix.records import CellResult, FamilyResult, Pair
from compat.matrix.trees import cache_folder

STORED = Path(__file__).parent / "results.json"
"""What was found last and committed."""


def keep(result: CellResult, folder: Path | None = None) -> CellResult:
    """Write `result` beside what is kept of its pair from the same sources; returns the two joined."""
    folder = folder or cache_folder() / "results"
    folder.mkdir(parents=True, exist_ok=True)
    joined = join(kept(folder).get(result.pair), result)
    place = folder / f"vllm-{result.pair.vllm}-transformers-{result.pair.transformers}.json"
    part = place.with_suffix(".part")
    part.write_text(json.dumps(joined.as_json(), indent=1))
    part.replace(place)
    return joined


def join(old: CellResult | None, new: CellResult) -> CellResult:
    """`new` with the families that only `old` has, where both are of the same sources."""
    if old is None or old.sources != new.sources or old.problem is not None:
        return new
    return replace(_with_others(new, old), seconds=round(new.seconds + old.seconds, 1))


def _with_others(new: CellResult, old: CellResult) -> CellResult:
    ran = {family.family for family in new.families}
    families = [*new.families, *(family for family in old.families if family.family not in ran)]
    return replace(new, families=tuple(sorted(families, key=lambda family: family.family)))


def kept(folder: Path | None = None) -> dict[Pair, CellResult]:
    """Every result in the cache."""
    folder = folder or cache_folder() / "results"
    found = [CellResult.of_json(json.loads(place.read_text())) for place in sorted(folder.glob("*.json"))]
    return {result.pair: result for result in found}


def stored(place: Path = STORED) -> dict[Pair, CellResult]:
    """What was committed; empty where nothing was."""
    if not place.exists():
        return {}
    found = [CellResult.of_json(cell) for cell in json.loads(place.read_text())]
    return {result.pair: result for result in found}


def commit(results: Mapping[Pair, CellResult], place: Path = STORED) -> None:
    """Write `results` over what was stored of their pairs and families; others stay as they were found last."""
    before = stored(place)
    now = {pair: _with_others(new, before[pair]) if pair in before else new for pair, new in results.items()}
    ordered = sorted((before | now).values(), key=lambda cell: [Version(part) for part in astuple(cell.pair)])
    place.write_text(json.dumps([cell.as_json() for cell in ordered], indent=1) + "\n")


def only(result: CellResult, families: Iterable[str]) -> CellResult:
    """`result` without families that were not asked for."""
    wanted = set(families)
    chosen: tuple[FamilyResult, ...] = tuple(family for family in result.families if family.family in wanted)
    return replace(result, families=chosen)
