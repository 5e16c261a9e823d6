"""Which pairs are left to run, and how long that takes.

Takes the pairs wanted and the results that are there; gives those left, and texts of progress. Pure but for
`sources_key`, which reads this repository's sources.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from compat.matrix.records import CellResult, Pair
from compat.zoo.store import source_key

WIDTH = 24
"""Characters of the bar."""


def sources_key(package: Path | None = None) -> str:
    """Twelve hex digits over everything whose change may change a result: zoo, parity and hf_backend, this tree's or that in
    the folder `package`."""
    root = Path(__file__).parents[2]
    return source_key((package or root) / "hf_backend", root / "compat" / "zoo", root / "compat" / "parity")


def families_left(
    pair: Pair, found: Mapping[Pair, CellResult], families: Sequence[str], sources: str
) -> tuple[str, ...]:
    """Those of `families` without a result on `pair` by these `sources`, in their order."""
    result = found.get(pair)
    if result is None or result.sources != sources or result.problem is not None:
        return tuple(families)
    done = {family.family for family in result.families}
    return tuple(family for family in families if family not in done)


def left(
    wanted: Sequence[Pair], found: Mapping[Pair, CellResult], families: Sequence[str], sources: str
) -> tuple[Pair, ...]:
    """The pairs of `wanted` without a result for all of `families` by these `sources`, in their order."""
    return tuple(pair for pair in wanted if families_left(pair, found, families, sources))


def progress(done: int, total: int, gone_s: float) -> str:
    """A bar, how many of how many, and the time gone and left; the time left once one is done."""
    filled = WIDTH * done // total if total else WIDTH
    bar = "#" * filled + "." * (WIDTH - filled)
    rest = f", about {clock(gone_s / done * (total - done))} left" if done and done < total else ""
    return f"[{bar}] {done}/{total}, {clock(gone_s)} gone{rest}"


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
