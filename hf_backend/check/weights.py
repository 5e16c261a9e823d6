"""Random weights that make an answer depend on everything that went in.

Takes a model with transformers' own initial weights; fills it in place. Not for trained models. The zoo fills its
checkpoints by it too.
"""

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

NORM_STD = 0.1
"""Spread around the initial value of weights that start constant (norms, biases, layer scales)."""


def randomise(model: "nn.Module", *, seed: int, std: float) -> None:
    """Fill every parameter of `model` with normal noise (float32), reproducibly.

    Each parameter has a generator of its own, seeded by its name: the same checkpoint comes out whatever order a
    transformers version builds the modules in. A parameter that transformers starts as a constant keeps that constant
    as its mean, so norm weights stay near 1 (or near 0 where the model adds the 1 itself) without naming any module.
    transformers' own initial weights (std 0.02) are too small: all layers together then hardly change the answer, and
    a picture in the wrong place goes unseen.
    """
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}:{name}".encode()))
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
            first = parameter.flatten()[0]
            if parameter.numel() > 1 and bool((parameter == first).all()):
                parameter.add_(noise.mul_(NORM_STD))
            else:
                parameter.copy_(noise.mul_(std))
