"""The model inside a checkpoint that generates text, for classes that `AutoModel` doesn't build.

Takes a config; gives the config of the part that vLLM serves, with a class for it registered at `AutoModel`. For most models
both are there already.
"""

from typing import Any

import torch
import transformers

from hf_backend.weights.skeleton import model_class


def served_config(config: Any, architectures: list[str], model: str, *, trust_remote_code: bool) -> Any:
    """The config from which `AutoModel` builds what vLLM serves, without a head.

    An Omni's thinker is a model of its own inside; its class has the head and no class without it.
    """
    part = _text_part(config)
    if type(part) not in transformers.AutoModel._model_mapping and not getattr(part, "auto_map", None):
        names = architectures if part is config else getattr(part, "architectures", None) or []
        chosen = _class_inside(model_class(config, architectures, model, trust_remote_code=trust_remote_code), part)
        with_head = chosen or model_class(part, names, model, trust_remote_code=trust_remote_code)
        transformers.AutoModel.register(type(part), headless(with_head), exist_ok=True)
    return part


def _text_part(config: Any) -> Any:
    """The config itself, or that of the part which holds the text config, where the config isn't the one to hold it."""
    text = config.get_text_config()
    if text is config or any(value is text for value in vars(config).values()):
        return config
    for value in vars(config).values():
        if isinstance(value, transformers.PreTrainedConfig) and value.get_text_config() is text:
            return _text_part(value)
    return config


def _class_inside(whole: type[Any], part: Any) -> type[Any] | None:
    """The class that takes `part`, where `whole` itself doesn't."""
    if getattr(whole, "config_class", None) is type(part):
        return whole
    for mapping in (
        "MODEL_FOR_MULTIMODAL_LM_MAPPING",
        "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING",
        "MODEL_FOR_CAUSAL_LM_MAPPING",
    ):
        known = getattr(transformers, mapping, {})
        if type(part) in known:
            return known[type(part)]
    return None


def headless(with_head: type[Any]) -> type[Any]:
    """The class with nothing in its head's place: its forward gives hidden states where it gave logits."""

    def __init__(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        with_head.__init__(self, config, *args, **kwargs)
        head = self.get_output_embeddings()
        for name, child in list(self.named_children()):
            if child is head:
                setattr(self, name, torch.nn.Identity())

    # Under the class's own name and module, by which transformers finds its renamings and its other facts.
    return type(with_head.__name__, (with_head,), {"__init__": __init__, "__module__": with_head.__module__})
