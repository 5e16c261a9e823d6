"""A step of the text model is right whatever is cut, cached or asked before it: levels and inputs for each layer.

Real engines on tiny random checkpoints, held to HF `generate` in float32 (C12). Steps are so short that chunked prefill
cuts items, and blocks so small that a repeated prompt is found in the prefix cache. One child process an engine.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hf_backend.check.compare import TOLERANCE

pytestmark = [pytest.mark.engine, pytest.mark.language, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
STEP = 16
CASES = ("one_image", "text_only", "other_size", "interleaved_sizes", "repeated", "together", "one_video", "one_clip")
"""In this order: text alone right after a picture, whose levels must be gone."""

ENGINES = (
    ("qwen3_vl", False),
    ("qwen3_vl", True),
    ("granite4_vision", False),
    ("gemma4_per_layer", False),
    ("gemma4_per_layer", True),
    ("gemma3n", False),
)
"""Family, and whether by torch.compile."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, marks=[pytest.mark.long] if each[1] or each[0] == "granite4_vision" else [])
        for each in ENGINES
    ],
    ids=lambda each: f"{each[0]}-{'compiled' if each[1] else 'eager'}",
)
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    family, compiled = request.param
    results = tmp_path_factory.mktemp(family) / "results.json"
    command = [sys.executable, "-m", "compat.parity.steps", family, str(STEP), "--case", ",".join(CASES)]
    command += ["--json", str(results), *(["--compiled"] if compiled else [])]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert results.exists(), f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    found: dict[str, Any] = json.loads(results.read_text())
    assert found["model_class"].startswith("hf_backend.")
    return found["cases"]  # type: ignore[no-any-return]


def test_c12_answers_equal_hf_generate(answers: dict[str, Any]) -> None:
    """C12: every answer, tokens and log-probabilities; also of the text that follows a picture."""
    assert answers["text_only"]
    wrong = {name: record["wrong"] for name, records in answers.items() for record in records if record["wrong"]}
    assert not wrong
    assert max(record["difference"] for records in answers.values() for record in records) <= TOLERANCE


def test_items_were_cut_by_a_step(answers: dict[str, Any]) -> None:
    """Otherwise the test above wouldn't show that part of an item is right."""
    assert any(record["cut"] for records in answers.values() for record in records)


def test_c2_a_repeated_prompt_came_from_the_prefix_cache(answers: dict[str, Any]) -> None:
    """C2: the second of two equal requests; the rest of an item then starts in the middle of it."""
    assert answers["repeated"][0]["cached_tokens"] < answers["repeated"][1]["cached_tokens"]
