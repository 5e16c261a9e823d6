"""A tiny random checkpoint of the same kind as a given one.

Takes a checkpoint's small files; gives a folder that transformers and vLLM load like any other. Nothing of the real weights is
read. What `hf_backend.check.shrink` proposes is built and held to one question: does the model run a prompt
with an item?
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_backend.check import folder as folders
from hf_backend.check import shrink
from hf_backend.check.weights import randomise
from hf_backend.errors import UnsupportedModelError

MOST_PARAMETERS = 600_000_000
"""2.4 GB in float32. A vocabulary of 260,000 and a hidden size of 512 makes 266 million of them."""
GAIN = 1.2
"""Standard deviation of the weights, times the root of the hidden size: large enough that an item changes the answer."""


@dataclass(frozen=True, slots=True)
class Tiny:
    """What was made."""

    how: str
    """In words: what was taken away."""
    parameters: int


def model_class(config: Any, folder: Path, *, trust_remote_code: bool) -> Any:
    """The class with the head: the one that the config names, from transformers or from the model's own code.

    Raises `UnsupportedModelError` where there is none.
    """
    import transformers
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    for name in getattr(config, "architectures", None) or ():
        if (found := getattr(transformers, name, None)) is not None:
            return found
    mapped: Mapping[str, str] = getattr(config, "auto_map", None) or {}
    if trust_remote_code:
        # The one that generates, where the code offers one without a head as well.
        for name in sorted(mapped, key=lambda name: name == "AutoModel"):
            if name.startswith("AutoModel"):
                return get_class_from_dynamic_module(mapped[name], str(folder))
    for name in dir(transformers):
        if name.startswith("AutoModelFor") and type(config) in (getattr(transformers, name)._model_mapping or {}):
            return getattr(transformers, name)._model_mapping[type(config)]
    raise UnsupportedModelError(
        type(config).__name__,
        found=f"architectures {getattr(config, 'architectures', None)} and auto_map {sorted(mapped)}",
        expected="a class of transformers, or one of the model's own code",
        do="Install a transformers that knows the model, or add --trust-remote-code.",
    )


def make(
    source: Path,
    target: Path,
    trials: Sequence[Mapping[str, Any]],
    *,
    trust_remote_code: bool,
    say: Callable[[str], None] = print,
) -> Tiny:
    """Write a tiny checkpoint of the kind of `source` into `target`, float32.

    `trials` are inputs that the model has to run: a proposal on which it doesn't is dropped.

    Raises what building the last proposal raised, and `UnsupportedModelError` where there is none small enough.
    """
    config = folders.config_of(source)
    folders.copy_small(source, target)
    failure: Exception | None = None
    tried: list[str] = []
    for how, smaller in [*shrink.candidates(config), ("nothing: it is small", config)]:
        (target / "config.json").write_text(json.dumps({**smaller, "dtype": "float32"}, indent=2))
        try:
            parameters, model = _build(target, trials, trust_remote_code=trust_remote_code)
        except Exception as error:  # noqa: BLE001 - a proposal that makes no model; the next may
            failure = error
            tried.append(f"{how}: {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}")
            say(f"  {tried[-1]}"[:300])
            continue
        if model is None:
            tried.append(f"{how}: {parameters / 1e6:.0f} million parameters are too many")
            continue
        model.save_pretrained(target)
        # As it was, but for the sizes: saving may drop what the model's own code needs.
        (target / "config.json").write_text(json.dumps({**smaller, "dtype": "float32"}, indent=2))
        return Tiny(how, parameters)
    raise UnsupportedModelError(
        config.get("model_type", "its config"),
        found="no smaller config that makes a model: " + "; ".join(tried),
        expected="one",
        do="Use --weights where the real model fits.",
    ) from failure


def _build(folder: Path, trials: Sequence[Mapping[str, Any]], *, trust_remote_code: bool) -> tuple[int, Any]:
    """How many parameters, and the model filled and seen to run; None in its place where they are too many."""
    import torch
    from transformers import AutoConfig, GenerationConfig

    config = AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
    chosen = model_class(config, folder, trust_remote_code=trust_remote_code)
    with torch.device("meta"):
        parameters = sum(weight.numel() for weight in chosen._from_config(config).parameters())
    if parameters > MOST_PARAMETERS:
        return parameters, None
    torch.manual_seed(0)
    model = chosen._from_config(config, dtype=torch.float32)
    text = config.get_text_config()
    randomise(model, seed=0, std=GAIN / float(text.hidden_size) ** 0.5)
    # No end of text: answers of one length compare.
    model.generation_config = GenerationConfig(do_sample=False, eos_token_id=None, pad_token_id=0)
    with torch.no_grad():
        for inputs in trials:
            model.eval()(**inputs)
    return parameters, model
