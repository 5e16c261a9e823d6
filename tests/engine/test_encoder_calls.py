"""An encoder's calls in a step are bounded by memory, and give what items have alone (C8, C9)."""

import subprocess
import sys
from pathlib import Path

import pytest
from children import ROOT, found

from compat.zoo.store import checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.encoding, pytest.mark.timeout(600)]

ENGINE = """
    import gc, json, sys
    import torch
    from compat import encoders
    from compat.parity import engine
    from hf_backend.check.engine import embed
    from hf_backend.encoding.memory import BUDGET_ENV, LiveBytes
    from hf_backend.probe.samples import picture
    import os

    SIZES = [(96, 96), (96, 64), (64, 96), (80, 80), (96, 48), (300, 300)]
    MIB = float(sys.argv[2])

    def measure(model):
        alone = model._info.alone("image")
        items = [alone(picture(*SIZES[number % len(SIZES)], seed=number), {}) for number in range(64)]
        told = {"largest": 0.0, "embeddings": 0.0}

        def live(some):
            gc.collect()
            with LiveBytes() as counted:
                made = embed(model, "image", some)
            told["embeddings"] = sum(each.nbytes for each in made)
            return made, counted.peak

        with torch.inference_mode():
            one_by_one = []
            for item in items:
                (made,), peak = live([item])
                one_by_one.append(made)
                told["largest"] = max(told["largest"], peak)
            for name, mib in (("free", 1e6), ("bounded", MIB)):
                os.environ[BUDGET_ENV] = str(mib)
                with encoders.counted(model, "image") as calls:
                    made, told[name] = live(items)
                told[name + " calls"] = calls
                told[name + " apart"] = max(
                    float((a - b).abs().max() / b.abs().max()) for a, b in zip(made, one_by_one, strict=True)
                )
        return told

    if __name__ == "__main__":
        llm = engine.start(sys.argv[1], engine.OURS)
        print("FOUND", json.dumps(llm.apply_model(measure)[0]))
"""

FAMILIES = [
    pytest.param("qwen2_vl", 1, id="qwen2_vl: packed, any sizes share a call"),
    pytest.param("mistral3", 1, id="mistral3: sides are padded"),
    pytest.param("idefics3", 1, id="idefics3: tiles", marks=pytest.mark.long),
    pytest.param("llava", 1, id="llava: one size", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("family", "calls"), FAMILIES)
def test_c9_64_pictures_in_bounded_memory(family: str, calls: int, tmp_path: Path) -> None:
    """With memory to spare one call; in half a MiB several, which give the same."""
    checkpoint(family)
    mib = 0.5
    told = found(tmp_path, ENGINE, family, mib)
    assert sum(told["free calls"]) == 64
    assert len(told["free calls"]) == calls
    assert sum(told["bounded calls"]) == 64
    assert len(told["bounded calls"]) > calls
    room = max(mib * 2**20, told["largest"]) + told["embeddings"]
    assert told["bounded"] <= 1.25 * room < told["free"], told
    assert max(told["free apart"], told["bounded apart"]) < 1e-5


@pytest.mark.parametrize(
    "families",
    [
        pytest.param(("mistral3", "phi4_multimodal"), id="padded sides, padded tiles"),
        pytest.param((), id="every tower of the zoo", marks=[pytest.mark.long, pytest.mark.timeout(1500)]),
    ],
)
def test_c9_in_any_order_and_chunks(families: tuple[str, ...]) -> None:
    """By the command that makes docs/encoders.md. Mistral 3's pictures of several sizes share a call; Phi-4-multimodal's passed
    that probe, too, and came out wrong with another number of tiles."""
    command = [sys.executable, "-m", "compat.encoders", *families]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    if families:
        assert "| mistral3 | image | its features method | 30+16+24+30+12 | 1 |" in done.stdout
        assert "| phi4_multimodal | image | the model's own forward | 1065+545+749+1065+1008 | 4 |" in done.stdout
