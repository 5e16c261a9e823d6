"""What the demo shows: pictures in characters, answers beside the truth, the accuracy table, a contact sheet.

Takes readings and answers; gives lines of text, JSON-ready dicts, and a PNG. Not for asking anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from hf_backend.demo.digits import Reading
from hf_backend.demo.reference import num_right

SHADES = " .:-=+*#%@"
ROWS = 8
"""Rows of characters a picture; columns are twice as many for a square one, because characters are twice as high as wide."""

SHEET_COLUMNS, CELL_WIDTH, CELL_HEIGHT = 10, 170, 88
"""Of the contact sheet; pixels."""


@dataclass(frozen=True)
class Result:
    """One kind of readings, with the answers of both sides in the same order."""

    name: str
    readings: Sequence[Reading]
    served: Sequence[str]
    reference: Sequence[str]

    @property
    def differing(self) -> list[int]:
        """Places at which server and reference don't give the same answer."""
        return [k for k, (one, other) in enumerate(zip(self.served, self.reference, strict=True)) if one != other]

    def as_dict(self) -> dict[str, Any]:
        """Counts, and every answer with its truth."""
        total = len(self.readings)
        return {
            "name": self.name,
            "readings": total,
            "server_right": num_right(self.readings, self.served),
            "hf_generate_right": num_right(self.readings, self.reference),
            "agree": total - len(self.differing),
            "answers": [
                {"pictures": reading.name, "truth": reading.truth, "server": served, "hf_generate": reference}
                for reading, served, reference in zip(self.readings, self.served, self.reference, strict=True)
            ],
        }


def characters(image: Image.Image) -> list[str]:
    """The picture as `ROWS` lines of characters, dark to bright."""
    columns = 2 * ROWS * image.width // image.height
    small = image.convert("L").resize((columns, ROWS), Image.Resampling.BOX)
    last = len(SHADES) - 1
    return ["".join(SHADES[round(small.getpixel((x, y)) / 255 * last)] for x in range(columns)) for y in range(ROWS)]


def shown(reading: Reading, answer: str) -> list[str]:
    """The pictures side by side, then answer and truth."""
    blocks = [characters(image) for image in reading.images]
    lines = ["  |" + "|".join(rows) + "|" for rows in zip(*blocks, strict=True)]
    return [*lines, f"  answer: {answer!r}   truth: {reading.truth!r}   {_mark(answer == reading.truth)}", ""]


def _mark(right: bool) -> str:
    return "right" if right else "WRONG"


def table(results: Sequence[Result]) -> list[str]:
    """Accuracy through the server beside that of `generate`, and how many answers are equal."""
    head = f"{'pictures held out of training':<32}{'through vllm serve':>20}{'HF generate':>16}{'same answer':>14}"
    lines = [head, "-" * len(head)]
    for result in results:
        total = len(result.readings)
        lines.append(
            f"{result.name:<32}{_share(num_right(result.readings, result.served), total):>20}"
            f"{_share(num_right(result.readings, result.reference), total):>16}"
            f"{total - len(result.differing):>10}/{total}"
        )
    return lines


def _share(right: int, total: int) -> str:
    return f"{right}/{total} {right / total:6.1%}" if total else "none"


def differences(results: Sequence[Result]) -> list[str]:
    """One line for each reading on which server and reference differ."""
    return [
        f"pictures {result.readings[k].name}: server {result.served[k]!r}, HF generate {result.reference[k]!r},"
        f" truth {result.readings[k].truth!r}"
        for result in results
        for k in result.differing
    ]


def save_sheet(results: Sequence[Result], path: Path) -> None:
    """Write all pictures with their answers into one PNG; wrong answers in red."""
    cells = [cell for result in results for cell in zip(result.readings, result.served, strict=True)]
    rows = -(-len(cells) // SHEET_COLUMNS)
    sheet = Image.new("RGB", (SHEET_COLUMNS * CELL_WIDTH, max(rows, 1) * CELL_HEIGHT), "white")
    draw = ImageDraw.Draw(sheet)
    for k, (reading, answer) in enumerate(cells):
        left, top = k % SHEET_COLUMNS * CELL_WIDTH + 6, k // SHEET_COLUMNS * CELL_HEIGHT + 6
        across = left
        for image in reading.images:
            sheet.paste(image, (across, top))
            across += image.width + 4
        right = answer == reading.truth
        text = answer if right else f"{answer} ({reading.truth})"
        draw.text((left, top + 54), text, fill="black" if right else "red")
        draw.text((left, top + 68), f"no. {reading.name}", fill="gray")
    sheet.save(path, format="PNG")
