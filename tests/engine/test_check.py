"""`hf-backend check --parity` on three families, and on a model that vLLM and this package have never seen.

The command runs as a user's would, in processes of its own; what it says is held to what the families are known to be.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from made_up import make_folder

from compat.zoo.store import checkpoint
from hf_backend.cli.main import main

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

REQUESTS = {"one image", "another image", "two images", "touching images", "one image again"}


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run the command with `--json`; its exit status and what it said."""
    # The package's own folder, for the processes that the command starts where nothing is installed.
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        status = main(["check", "--json", *arguments])
        return status, json.loads(capsys.readouterr().out)

    return run


@pytest.mark.long
def test_pictures_that_the_processor_pads(check: Any) -> None:
    """Idefics3 joins tiles along dimension 1 and answers all requests as transformers does (C1, C9, C12)."""
    status, said = check(str(checkpoint("idefics3")), "--parity")
    assert (status, said["status"], said["nos"]) == (0, "served", []), said["nos"]
    image = said["processor"]["modalities"]["image"]
    assert image["strategy"] in ("offsets", "legacy")
    assert image["layouts"]["pixel_values"]["dim"] == 1
    assert image["independent"]
    assert image["typical"][0]["size"] == [224, 224]
    assert said["engine"]["class"] == "hf_backend.models.TransformersMultiModalForCausalLM"
    assert said["engine"]["encoders"]["image"]["apart"] <= 1e-5
    assert said["engine"]["parity"].keys() >= REQUESTS
    assert all(one["right"] for one in said["engine"]["parity"].values())


@pytest.mark.long
def test_clips(check: Any) -> None:
    """Qwen2-Audio has no features method: its forward serves."""
    status, said = check(str(checkpoint("qwen2_audio")), "--parity")
    assert (status, said["nos"]) == (0, []), said["nos"]
    assert said["engine"]["encoders"]["audio"]["way"] == "the model's own forward"
    assert said["engine"]["parity"]["one audio"]["right"]


def test_a_refused_processor(check: Any, tmp_path: Path) -> None:
    """A processor that gives a picture more tokens where another stands beside it breaks C1: refused, naming it."""
    folder = make_folder(tmp_path / "made_up")
    code = folder / "processing_made_up.py"
    rows = "(self.image_token * columns + self.row_token) * rows for"
    assert rows in code.read_text()
    code.write_text(code.read_text().replace(rows, f"self.row_token * len(cut) + {rows}"))
    status, said = check(str(folder), "--trust-remote-code")
    assert (status, said["status"]) == (1, "problem")
    (no,) = [no for no in said["nos"] if no["subject"] == "image"]
    assert no["whose"] == "the processor"
    assert "MadeUpProcessor" in no["text"]
    assert no["do"]
    assert said["processor"]["modalities"].keys() == {"audio"}, "the other modality is served all the same"


def test_no_modality_left(check: Any, tmp_path: Path) -> None:
    """With neither served vLLM's config fails, and what is told is the processor's fault all the same."""
    folder = make_folder(tmp_path / "made_up")
    code = folder / "processing_made_up.py"
    code.write_text(
        code.read_text().replace("tokens = self.tokenizer(texts", 'tokens = self.tokenizer(["all the same"]')
    )
    status, said = check(str(folder), "--trust-remote-code")
    assert status == 1
    (no,) = said["nos"]
    assert no["whose"] == "the processor"
    assert no["text"].startswith("MadeUpProcessor: found")


def test_a_model_nobody_has_seen(check: Any, tmp_path: Path) -> None:
    """Own config, processor and model through `auto_map`, with pictures and clips: right with no code of ours (C12)."""
    folder = make_folder(tmp_path / "made_up")
    status, said = check(str(folder), "--parity", "--trust-remote-code")
    assert (status, said["nos"]) == (0, []), said["nos"]
    assert said["engine"]["model"] == "MadeUpModel"
    assert said["reference"]["tiny"]["how"] == "fewer heads and layers"
    assert said["reference"]["refused"] == {}
    assert said["processor"]["modalities"].keys() == {"image", "audio"}
    asked = said["engine"]["parity"]
    assert asked.keys() >= {"one of each", "touching images", "two audios", "one of each, all at once"}
    assert all(one["right"] for one in asked.values())
    assert max(one["difference"] for one in asked.values()) < 1e-3


def test_its_code_is_not_run_unasked(check: Any, tmp_path: Path) -> None:
    status, said = check(str(make_folder(tmp_path / "made_up")))
    assert status == 1
    (no,) = said["nos"]
    assert no["whose"] == "the model"
    assert "--trust-remote-code" in no["do"]


def test_no_such_model(check: Any) -> None:
    status, said = check("./nowhere")
    assert status == 1
    assert "no such folder" in said["nos"][0]["text"]
