"""`hf-backend demo`: its options, its verdict and its exit status. The whole run is `make demo` and `tests/serve`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="the demo's pictures come with scikit-learn")
pytest.importorskip("openai", reason="the demo asks through the openai client")

from hf_backend.cli import demo, main
from hf_backend.demo import digits, report

READINGS = digits.singles(2)
TRUTHS = [reading.truth for reading in READINGS]
PLUGIN_LINES = ["hf_backend serves --model-impl transformers"]


def verdict(served: list[str], plugin_lines: list[str], *options: str) -> tuple[int, list[str]]:
    said: list[str] = []
    args = main.parser().parse_args(["demo", *options])
    results = [report.Result(name, READINGS, served, TRUTHS) for name in ("one picture", "three pictures")]
    return demo.show(args, results, plugin_lines, {"reading": 1.0}, said.append), said


def test_equal_answers_of_our_own_backend_are_a_success() -> None:
    status, said = verdict(TRUTHS, PLUGIN_LINES)
    assert status == 0
    assert said[-1].startswith("OK:")


def test_a_differing_answer_is_named_and_fails() -> None:
    status, said = verdict([TRUTHS[0], "wrong"], PLUGIN_LINES)
    assert status == 1
    assert any(f"pictures {READINGS[1].name}: server 'wrong'" in line for line in said)
    assert said[-1].startswith("FAILED: 2 answers differ")


def test_right_answers_of_another_backend_fail() -> None:
    status, said = verdict(TRUTHS, [])
    assert status == 1
    assert "NOT by hf_backend" in said[-1]


def test_json_is_all_there_is_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    verdict(TRUTHS, PLUGIN_LINES, "--json")
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is True
    assert [result["agree"] for result in printed["results"]] == [2, 2]
    assert printed["results"][0]["answers"][0]["truth"] == TRUTHS[0]


@pytest.mark.parametrize("options", [["--singles", "361"], ["--singles", "-1"]])
def test_impossible_numbers_are_refused_before_anything_starts(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["demo", *options]) == 2
    assert f"found count {options[1]}; expected 0 to 360" in capsys.readouterr().out


def test_a_folder_without_checkpoint_is_refused_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["demo", "--checkpoint", str(tmp_path)]) == 2
    out = capsys.readouterr().out
    assert str(tmp_path) in out
    assert "config.json" in out


def test_importing_the_command_imports_no_torch() -> None:
    code = "import sys, hf_backend.cli.demo; print({'torch', 'vllm', 'transformers', 'sklearn'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
