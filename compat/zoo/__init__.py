"""Tiny random checkpoints of real model families, made on the spot from specs as data.

Takes the name of a family; gives a folder that `AutoProcessor`, `AutoModelForImageTextToText` and vLLM load like any
checkpoint from the hub. Nothing is downloaded. Not for trained models: the weights are random, the answers mean nothing
and are only good for comparing two implementations.
"""

from compat.zoo.registry import families, spec
from compat.zoo.spec import Spec, Turns
from compat.zoo.store import checkpoint

__all__ = ["Spec", "Turns", "checkpoint", "families", "spec"]
