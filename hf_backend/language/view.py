"""The text-only face of a multimodal model that vLLM asks for (`get_language_model`).

The Transformers backend has no separate vLLM class for the text model, so the face is an object of a class made of the
text-side bases, sharing the model's state.
"""

from collections.abc import Callable
from typing import Any

import torch

from hf_backend.upstream import MultiModalMixin


def language_view(multimodal_model: torch.nn.Module) -> torch.nn.Module:
    """The face of `multimodal_model`: an instance of its text-side bases with its state."""
    return _view_class(type(multimodal_model))(multimodal_model)


def _view_class(model_class: "type[torch.nn.Module]") -> "Callable[[torch.nn.Module], torch.nn.Module]":
    """A class of the bases of `model_class` that make a text model of it, in their order.

    vLLM's own classes and this package's are kept, multimodal ones left out: with one of those among the bases, vLLM would
    take the face for a multimodal model and ask it for its language model in turn.
    """
    bases = tuple(
        base
        for base in model_class.__mro__[1:]
        if (".transformers." in base.__module__ or base.__module__.startswith("hf_backend.language"))
        and not issubclass(base, MultiModalMixin)
    )
    return type("LanguageModel", bases, {"__init__": _share_state})


def _share_state(self: torch.nn.Module, multimodal_model: torch.nn.Module) -> None:
    """Take over the state of `multimodal_model`, with the text model where it has one of its own in place of the whole."""
    self.__dict__.update(multimodal_model.__dict__)
    whole: Any = multimodal_model.model
    text_model = whole.get_decoder()
    name = next((name for name, module in whole.named_modules() if module is text_model), "")
    if name:
        # An instance attribute is found before the registered child `model` of the shared state.
        self.__dict__["model"] = text_model
        # By these Eagle3 finds the layers whose hidden states it takes; they are told from `model`.
        names = self.__dict__["_layer_names"]
        self.__dict__["_layer_names"] = {index: layer.removeprefix(f"{name}.") for index, layer in names.items()}
