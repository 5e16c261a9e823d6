"""Builds one family's checkpoint.

Takes a spec and a folder; gives the folder with config, weights, tokenizer, processor, chat template and generation
config. Not for finding a checkpoint made before (`compat.zoo.store`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat.zoo.chat import chat_template
from compat.zoo.registry import spec as find_spec
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import make_tokenizer
from compat.zoo.untyped import transformers
from hf_backend.check.weights import randomise

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def build(family: str, folder: Path) -> Path:
    """Save a full checkpoint of `family` under `folder` (made if missing) and return `folder`.

    float32 safetensors in the layout that the installed transformers saves. `KeyError` for an unknown family,
    `AttributeError` where the installed transformers does not know it.
    """
    spec = find_spec(family)
    tokenizer = make_tokenizer(spec)
    processor = getattr(transformers, spec.processor_class)(**spec.processor(tokenizer))
    processor.chat_template = chat_template(spec)
    model = make_model(spec, tokenizer)
    # No end-of-text id: random weights must not end an answer early, so that each comparison has the same length.
    model.generation_config = transformers.GenerationConfig(
        do_sample=False, eos_token_id=None, pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id
    )

    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    rename_weights(folder / "model.safetensors", spec.hub_prefixes)
    processor.save_pretrained(folder)
    return folder


def rename_weights(file: Path, prefixes: Mapping[str, str]) -> None:
    """Replace the first of `prefixes` that a weight's name in `file` starts with; `file` is written again if one does."""
    from safetensors.torch import load_file, save_file

    def renamed(name: str) -> str:
        found = next((prefix for prefix in prefixes if name.startswith(prefix)), "")
        return prefixes.get(found, "") + name.removeprefix(found)

    if prefixes:
        weights = {renamed(name): weight for name, weight in load_file(file).items()}
        save_file(weights, file, metadata={"format": "pt"})


def make_model(spec: Spec, tokenizer: "PreTrainedTokenizerFast") -> Any:
    """The randomly filled model of `spec` in float32 and evaluation mode."""
    import torch

    config = getattr(transformers, spec.config_class)(**spec.config(tokenizer))
    torch.manual_seed(spec.seed)  # for buffers that a module draws at random
    known = getattr(transformers, spec.model_class)
    # An auto class, or a class that none of them knows.
    make = getattr(known, "from_config", None) or known._from_config
    model = make(config, dtype=torch.float32)
    randomise(model, seed=spec.seed, std=spec.std)
    return model.eval()
