"""The small files of a checkpoint: config, processor, tokenizer, code; never its weights.

Takes a path or a name on the hub; gives a folder. Not for building models (`hf_backend.check.tiny`).
"""

import json
import shutil
from pathlib import Path
from typing import Any

from hf_backend.errors import UnsupportedModelError

SMALL = ("*.json", "*.jinja", "*.txt", "*.model", "*.py", "*.tiktoken", "*.yaml")
WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf", "*.h5", "*.msgpack", "*.onnx", "*.index.json")


def find(model: str, *, weights: bool = False) -> Path:
    """The folder of `model`: itself if it is one, else the hub's copy, downloaded now unless HF_HUB_OFFLINE says not to.

    Raises `UnsupportedModelError` where there is none, or no config in it.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UnsupportedModelError(
                str(path), found="no config.json", expected="a folder as the hub has them", do="Give another folder."
            )
        return path
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise UnsupportedModelError(
            model, found="no such folder", expected="a folder or a name on the hub", do="Give one that is there."
        )
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, allow_patterns=None if weights else list(SMALL)))
    except Exception as error:
        raise UnsupportedModelError(
            model,
            found=f"no copy of it ({type(error).__name__}: {error})",
            expected="a name on the hub, and a way there or a copy in the cache",
            do="Check the name; unset HF_HUB_OFFLINE to download it.",
        ) from error


def config_of(folder: Path) -> dict[str, Any]:
    """The folder's `config.json`."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return config


def copy_small(source: Path, target: Path) -> None:
    """Everything of `source` but weights into `target`, which is made."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*WEIGHTS, ".*", "__pycache__"), dirs_exist_ok=True)
