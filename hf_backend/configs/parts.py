"""The model inside a checkpoint that generates text, for classes that `AutoModel` doesn't build.

Takes a config; gives the config of the part that vLLM serves, with a class for it registered at `AutoModel`. For most models
both are there already.
"""

from typing import Any

import torch
import transformers

from hf_backend.probe.parts import text_part
from hf_backend.weights.skeleton import model_class

HEAD_MAPPINGS = (
    "MODEL_FOR_MULTIMODAL_LM_MAPPING",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING",
    "MODEL_FOR_CAUSAL_LM_MAPPING",
)
"""transformers' mappings from configs to classes with a head."""


def served_config(config: Any, architectures: list[str], model: str, *, trust_remote_code: bool) -> Any:
    """The config from which `AutoModel` builds what vLLM serves, without a head.

    An Omni's thinker is a model of its own inside, whose class has the head, and no class is without it; for Llama 4 `AutoModel`
    builds the class with the head.
    """
    part = text_part(config)
    if getattr(part, "auto_map", None):
        return part
    known = transformers.AutoModel._model_mapping
    with_head = _class_with_head(part)
    if type(part) not in known:
        with_head = with_head or model_class(config, architectures, model, trust_remote_code=trust_remote_code)
    elif known[type(part)] is not with_head:
        return part
    transformers.AutoModel.register(type(part), headless(with_head), exist_ok=True)
    return part


def _class_with_head(config: Any) -> Any:
    """The class with a head that transformers has for a config, or None."""
    mappings = (getattr(transformers, name, {}) for name in HEAD_MAPPINGS)
    return next((mapping[type(config)] for mapping in mappings if type(config) in mapping), None)


def headless(with_head: type[Any]) -> type[Any]:
    """The class with nothing in its head's place: its forward gives hidden states where it gave logits."""

    def __init__(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        with_head.__init__(self, config, *args, **kwargs)
        head = self.get_output_embeddings()
        for parent in list(self.modules()):
            for name, child in list(parent.named_children()):
                if child is head:
                    setattr(parent, name, torch.nn.Identity())

    # Under the class's own name and module, by which transformers finds its renamings and its other facts.
    return type(with_head.__name__, (with_head,), {"__init__": __init__, "__module__": with_head.__module__})
