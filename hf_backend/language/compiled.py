"""Keeping torch.compile right for a text model that is given more than embeddings.

Takes the text model's class and what it is given; gives the dimensions that vary from step to step, and a mark in vLLM's
configuration that keeps compiled graphs of other inputs apart.
"""

import inspect
from types import UnionType
from typing import TYPE_CHECKING, Union, get_args, get_origin

import torch

from hf_backend.encoding.capture import TEXT_ARGUMENTS

if TYPE_CHECKING:
    from vllm.config import VllmConfig

    from hf_backend.language.inputs import TextInputs


def per_token_dims(text_model_class: type) -> dict[str, int]:
    """Dimension 1 for every parameter of the forward that takes a tensor and isn't one of any text model: what is given
    there is [1, tokens, ...]. One that is given nothing doesn't matter to vLLM."""
    parameters = inspect.signature(text_model_class.forward).parameters.values()  # type: ignore[attr-defined]
    return {
        parameter.name: 1
        for parameter in parameters
        if parameter.name not in TEXT_ARGUMENTS and _takes_a_tensor(parameter.annotation)
    }


def _takes_a_tensor(annotation: object) -> bool:
    """Whether a floating tensor is the type, or one of a union's; not where it is inside a list or a dictionary."""
    types = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return any(each in (torch.Tensor, torch.FloatTensor) for each in types)


def tell_compiled_apart(vllm_config: "VllmConfig", inputs: "TextInputs") -> None:
    """Make what is added between layers part of the key under which vLLM keeps compiled graphs.

    vLLM loads a kept graph without asking whether its guards hold, and knows neither hooks on layers nor this package: a
    graph that its own backend compiled for Qwen3-VL, without levels, would be taken for ours.
    """
    if isinstance(vllm_config.additional_config, dict) and not inputs.trivial:
        vllm_config.additional_config["hf_backend"] = inputs.describe()
