"""Calling `get_<modality>_features` of an HF model, and reading what it returns.

Takes a model and one bucket's arguments; gives embeddings as rows. Argument names are the fields' own: HF models name
their parameters after their processor's outputs. Not for splitting the rows among items (`hf_backend.encoding.encode`).
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from hf_backend.modalities import Modality

if TYPE_CHECKING:
    from hf_backend.records import FieldValue


@dataclass(frozen=True, slots=True)
class FeaturesMethod:
    """The features method of one model for one modality."""

    method: Callable[..., Any]
    accepted: frozenset[str]
    """Names of fields it is given."""

    @classmethod
    def of(cls, model: torch.nn.Module, modality: Modality) -> "FeaturesMethod | None":
        """Find it; None where the HF model has none, or one that asks for more than an item (MusicFlamingo: the
        prompt's ids)."""
        methods = (getattr(model, name, None) for name in modality.features_methods)
        method = next((method for method in methods if method is not None), None)
        if method is None or "input_ids" in inspect.signature(method).parameters:
            return None
        return cls(method, accepted=_accepted(method, model.forward))

    def __call__(self, fields: Mapping[str, "FieldValue"], device: torch.device) -> torch.Tensor:
        """Embeddings of one bucket, [rows, hidden size], on `device`.

        HF implementations expect every argument where the model is, and synchronise inside (Qwen2-VL calls `.tolist()`
        on its grid).
        """
        arguments = {name: to_device(value, device) for name, value in fields.items() if name in self.accepted}
        return as_rows(self.method(**arguments, return_dict=True))


def to_device(value: "FieldValue", device: torch.device) -> "FieldValue":
    """A field's value on `device`, a list entry by entry."""
    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=True)
    return [part.to(device, non_blocking=True) for part in value]


def _accepted(method: Callable[..., Any], forward: Callable[..., Any]) -> frozenset[str]:
    """Names the method takes: its own, and through its `**kwargs` those which the model's forward names.

    A processor's other outputs would travel through `**kwargs` into the vision tower, which may refuse them or, worse,
    take one for something else.
    """
    own = inspect.signature(method).parameters
    names = {name for name, parameter in own.items() if parameter.kind is not inspect.Parameter.VAR_KEYWORD}
    if len(names) < len(own):
        names |= inspect.signature(forward).parameters.keys() - {"kwargs", "input_ids", "attention_mask"}
    return frozenset(names)


def as_rows(output: Any) -> torch.Tensor:
    """Embeddings as [rows, hidden size], from whatever form a features method returns them in.

    transformers 5 returns an output object whose `pooler_output` is a tensor of two or more dimensions, or a sequence of
    them, one an item or one a tile; the Omni models' audio leaves it out and means `last_hidden_state`. Rows are in item
    order in every form. An `attention_mask` beside them says which rows are of an item: Gemma 4's processor pads a clip to
    whole blocks of samples, which at some lengths is a row more than there are placeholders. Raises `ValueError` for anything else.
    """
    pooled = getattr(output, "pooler_output", output)
    if pooled is None:
        pooled = getattr(output, "last_hidden_state", None)
    if isinstance(pooled, torch.Tensor) and pooled.ndim >= 2:
        mask = getattr(output, "attention_mask", None)
        if isinstance(mask, torch.Tensor) and mask.shape == pooled.shape[:-1]:
            return pooled[mask.to(pooled.device, torch.bool)]
        return pooled.reshape(-1, pooled.shape[-1])
    if isinstance(pooled, (list, tuple)) and pooled:
        return torch.cat([as_rows(part) for part in pooled])
    raise ValueError(
        f"the features method returned {type(output).__name__} with pooler_output of {type(pooled).__name__};"
        " expected a tensor of two or more dimensions or a sequence of them"
    )
