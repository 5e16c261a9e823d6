"""The made-up model's folder, with the tokenizer that tests make on the spot.

Takes a folder; gives it filled with `made_up_model` and a tokenizer. There are no weights: the config has the sizes
of a real model, and `hf-backend check` makes a tiny one of it.
"""

import shutil
from pathlib import Path

from compat.zoo.spec import Spec
from compat.zoo.tokenizer import make_tokenizer

SOURCE = Path(__file__).parent / "made_up_model"

SPEC = Spec(
    name="made_up",
    placeholders={"image": "<picture>", "audio": "<sound>"},
    special_tokens=("<picture>", "<row>", "<sound>", "<hear>", "</hear>"),
    config_class="",
    config=lambda tokenizer: {},
    processor_class="",
    processor=lambda tokenizer: {},
)
"""Only what its tokenizer needs."""


def make_folder(folder: Path) -> Path:
    """Fill `folder` and return it."""
    shutil.copytree(SOURCE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    make_tokenizer(SPEC).save_pretrained(folder)
    return folder
