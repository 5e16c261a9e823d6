"""The model that transformers would load a checkpoint into, without its weights.

Takes a config and the architecture's name; gives the model on the meta device. transformers keys its renamings and converters
on the class with its head, names weights by it, and knows by it which weights are tied; vLLM builds the class without its
head, for which half of that is missing (with transformers 5.10 and 5.12 no Qwen2-VL checkpoint loads for it).
"""

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import transformers
from transformers.dynamic_module_utils import get_class_from_dynamic_module

from hf_backend.errors import UnsupportedModelError

AUTO_CLASSES = ("AutoModelForMultimodalLM", "AutoModelForImageTextToText", "AutoModelForCausalLM", "AutoModel")
"""Where a config's `architectures` names a class of vLLM's, these tell which of transformers' it is; the first that knows the
config."""


def model_class(config: Any, architectures: Sequence[str], model: str, *, trust_remote_code: bool) -> type[Any]:
    """The class that the checkpoint at `model` was saved from: transformers' own, or that of the checkpoint's code."""
    references = getattr(config, "auto_map", None) or {}
    for architecture in architectures:
        if trust_remote_code:
            for reference in references.values():
                if isinstance(reference, str) and reference.rpartition(".")[2] == architecture:
                    own: type[Any] = get_class_from_dynamic_module(reference, model)
                    return own
        found: type[Any] | None = getattr(transformers, architecture, None)
        if found is not None:
            return found
    for name in AUTO_CLASSES:
        mapping = getattr(getattr(transformers, name, None), "_model_mapping", {})
        if type(config) in mapping:
            chosen = mapping[type(config)]
            return chosen[0] if isinstance(chosen, tuple) else chosen
    raise UnsupportedModelError(
        ", ".join(architectures) or type(config).__name__,
        found="no class of that name in the installed transformers, nor in the checkpoint's own code",
        expected="the class that `architectures` of the config names",
        do="Install a transformers that knows it, or pass --trust-remote-code if the checkpoint brings it.",
    )


def skeleton(config: Any, architectures: Sequence[str], model: str, *, trust_remote_code: bool = False) -> Any:
    """The model of the first class of `architectures` on the meta device, in float32.

    `config` is copied; vLLM's changes to its attention aren't kept. Raises `UnsupportedModelError` where no class is found.
    """
    found = model_class(config, architectures, model, trust_remote_code=trust_remote_code)
    own = copy.deepcopy(config)
    # vLLM has written its own attention into it, which transformers takes for one that it should look up.
    own._attn_implementation = "eager"
    with torch.device("meta"), _default_dtype():
        made: Any = found(own)
    return made


@contextlib.contextmanager
def _default_dtype() -> Iterator[None]:
    """float32: the skeleton's dtypes aren't read, and some constructors compute with tensors that half precision lacks."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def output_embeddings_name(skeleton: Any) -> str | None:
    """The name of the head that gives logits, or None for a model without one.

    transformers' own accessor finds most; the Omni models, whose head belongs to a model inside, are searched.
    """
    for path, module in skeleton.named_modules():
        if isinstance(module, transformers.PreTrainedModel):
            head = module.get_output_embeddings()
            names = (name for name, child in module.named_modules() if name and child is head)
            if (name := next(names, None)) is not None:
                return f"{path}.{name}" if path else str(name)
    return None


def head_is_tied(skeleton: Any, head: str) -> bool:
    """Whether transformers ties the head's weight to the input embeddings: by the class and the config that it reads,
    where vLLM takes either of the outer and the inner config."""
    return f"{head}.weight" in skeleton.all_tied_weights_keys
