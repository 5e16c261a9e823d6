"""Checkpoints made once and kept, so that a test does not wait for them.

Takes a family; gives the folder of its checkpoint, built if it is not there. Not for building in a folder
of one's own (`compat.zoo.build`).
"""

import functools
import hashlib
import os
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

from compat.zoo.build import build
from hf_backend.check import weights

CACHE_VARIABLE = "HF_BACKEND_ZOO_CACHE"
"""Environment variable naming the folder to keep checkpoints in."""


def cache_folder() -> Path:
    """The folder that checkpoints and reference answers are kept in."""
    default = Path.home() / ".cache" / "hf_backend" / "zoo"
    return Path(os.environ.get(CACHE_VARIABLE) or default)


@functools.cache
def source_key(*folders: Path) -> str:
    """Twelve hex digits over the sources below `folders`, by default the zoo's own and what fills its weights.

    A spec holds functions, which have no content to compare; the text of all sources has, and building again is cheap.
    """
    digest = hashlib.sha256()
    if not folders:
        digest.update(Path(weights.__file__).read_bytes())
    for folder in folders or (Path(__file__).parent,):
        for path in sorted(folder.rglob("*.py")):
            digest.update(str(path.relative_to(folder)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def checkpoint(family: str) -> Path:
    """The folder of the checkpoint of `family`, built on the first call for these sources and this transformers.

    Safe beside other processes: it is built under another name and moved into place.
    """
    place = cache_folder() / f"transformers-{metadata.version('transformers')}" / source_key() / family
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{family}-", dir=place.parent))
    try:
        build(family, made)
        try:
            made.rename(place)
        except OSError:
            if not place.is_dir():  # another process was not faster: the move itself failed
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return place
