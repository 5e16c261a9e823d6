"""The heat map of the matrix for README.

Takes results by pair and the two axes; writes a PNG. Letters stand beside the colours, and what pip refuses is hatched, so that
it reads without colour. Needs matplotlib. Not for the table (`compat.matrix.merge`).
"""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compat.matrix.merge import mark
from compat.matrix.records import CellResult, Outcome, Pair

COLOURS: Mapping[Outcome | None, str] = {
    Outcome.RIGHT: "#8fd3b6",
    Outcome.WRONG: "#f6c667",
    Outcome.FAILS: "#e58a7b",
    None: "#e8e8e8",
}
"""Told apart by people who don't see red and green alike; None is a pair that wasn't run."""
LEGEND: Mapping[Outcome | None, str] = {
    Outcome.RIGHT: "R  every family right",
    Outcome.WRONG: "W  an answer was wrong",
    Outcome.FAILS: "F  an engine did not start",
}


def draw(results: Mapping[Pair, CellResult], vllm: Sequence[str], transformers: Sequence[str], place: Path) -> None:
    """Write the picture to `place`; its kind follows the name's ending. `ImportError` without matplotlib."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    patches: Any = importlib.import_module("matplotlib.patches")
    plt: Any = importlib.import_module("matplotlib.pyplot")

    figure, axes = plt.subplots(figsize=(1.5 + 0.72 * len(transformers), 1.6 + 0.52 * len(vllm)))
    for row, version in enumerate(vllm):
        for column, other in enumerate(transformers):
            result = results.get(Pair(version, other))
            colour = COLOURS[result.outcome if result else None]
            hatch = "///" if result is not None and result.pip else None
            axes.add_patch(
                patches.Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="white", hatch=hatch, linewidth=1.5)
            )
            axes.text(column + 0.5, row + 0.5, mark(result), ha="center", va="center", fontsize=9)
    axes.set_xlim(0, len(transformers))
    axes.set_ylim(0, len(vllm))
    axes.set_xticks([column + 0.5 for column in range(len(transformers))], transformers, fontsize=9)
    axes.set_yticks([row + 0.5 for row in range(len(vllm))], vllm, fontsize=9)
    axes.set_xlabel("transformers")
    axes.set_ylabel("vLLM")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    shown = [patches.Patch(facecolor=COLOURS[outcome], label=text) for outcome, text in LEGEND.items()]
    shown.append(patches.Patch(facecolor="white", edgecolor="#999999", hatch="///", label="p  pip refuses the pair"))
    axes.legend(
        handles=shown,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.2),
        ncols=4,
        frameon=False,
        fontsize=8,
        handlelength=1.4,
    )
    # No date and no version in it: the same results give the same file.
    figure.savefig(place, dpi=150, bbox_inches="tight", metadata={"Software": None} if place.suffix == ".png" else {})
    plt.close(figure)
