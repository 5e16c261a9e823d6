"""Contiguous inputs for vLLM's linear layers inside encoders, on the CPU.

vLLM's CPU kernel refuses an activation whose last dimension isn't the fastest ("Expected a.stride(-1) == 1"), which text
models never hand it and Gemma's audio conformers do, after a transposed convolution. Takes a model and its text model; adds
a hook that copies where it has to, and only there. It can go once vLLM's kernel takes strides or makes the copy itself.
"""

from typing import Any

import torch

from hf_backend.upstream import LinearBase


def make_inputs_contiguous(
    model: torch.nn.Module, text_model: torch.nn.Module, kind: type[torch.nn.Module] = LinearBase
) -> int:
    """Add the hook to every layer of `kind` in `model` outside `text_model`; returns how many there are."""
    inside = set(text_model.modules())
    layers = [module for module in model.modules() if isinstance(module, kind) and module not in inside]
    for layer in layers:
        layer.register_forward_pre_hook(_first_contiguous)
    return len(layers)


def _first_contiguous(module: torch.nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    if arguments and isinstance(arguments[0], torch.Tensor):
        return (arguments[0].contiguous(), *arguments[1:])
    return arguments
