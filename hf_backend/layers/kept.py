"""Modules that vLLM's Transformers backend would replace and must not.

vLLM replaces every `nn.Linear` by its own, and every child named `experts` by its expert layers. A replaced layer computes the
same only if nobody else reads its weight and its forward is that of the class it stands for.
"""

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import torch

EXPERTS = "experts"
"""The name by which vLLM finds expert layers."""

ROUTING_ARGUMENTS = 3
"""Hidden states, the chosen experts and their weights: what vLLM's layer is called with in a model's own expert block."""


def kept(model: Any, text_model: torch.nn.Module) -> Iterator[tuple[torch.nn.Module, str]]:
    """Parent and name of every module of `model` to leave as it is, outermost first."""
    text = {id(module) for module in text_model.modules()}
    for parent in model.modules():
        for name, child in parent.named_children():
            if (
                _reads_weights(child)
                or _own_linear(child)
                or (name == EXPERTS and _other_experts(child, id(child) in text))
            ):
                yield parent, name


@contextlib.contextmanager
def aside(model: Any, text_model: torch.nn.Module) -> Iterator[None]:
    """Take the kept modules out of `model` while vLLM replaces layers."""
    taken = [(parent, name, parent._modules[name]) for parent, name in kept(model, text_model)]
    for parent, name, _ in taken:
        parent._modules[name] = torch.nn.Identity()
    try:
        yield
    finally:
        for parent, name, module in taken:
            parent._modules[name] = module


def _reads_weights(module: torch.nn.Module) -> bool:
    """torch's attention reads its projection's weight itself (Aria, Idefics' and SigLIP's pooling heads)."""
    return isinstance(module, torch.nn.MultiheadAttention)


def _own_linear(module: torch.nn.Module) -> bool:
    """A linear layer whose class does more than multiply (Llama 4's router also chooses)."""
    return isinstance(module, torch.nn.Linear) and type(module).forward is not torch.nn.Linear.forward


def _other_experts(experts: torch.nn.Module, in_text_model: bool) -> bool:
    """Experts that aren't the text model's (of which the config that vLLM reads says nothing), or that are called otherwise
    than vLLM's layer: Llama 4's take every expert's tokens, scaled by the router beforehand."""
    if not in_text_model:
        return True
    if isinstance(experts, torch.nn.ModuleList):
        return False
    return len(inspect.signature(experts.forward).parameters) < ROUTING_ARGUMENTS
