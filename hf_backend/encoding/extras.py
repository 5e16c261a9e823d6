"""What a forward hands to its text model beside embeddings, told apart by shape and content.

Takes what was captured and which tokens embeddings replace; gives for each tensor whether it is a *level* (one row an
embedding of the item, which travels with the item), *per token* (one row a token of the prompt, which has to follow from
the ids alone) or a mask that only says where the embeddings go. Anything else is refused. Not for what is done with them
(`hf_backend.language`). Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from hf_backend.encoding.capture import Captured
from hf_backend.errors import UnsupportedModelError

Path: TypeAlias = tuple[str | int, ...]
"""From an argument's name through lists and dictionaries to one tensor."""


@dataclass(frozen=True, slots=True)
class Extras:
    """Where the tensors of each kind are among the arguments."""

    levels: tuple[Path, ...] = ()
    """[embeddings, hidden size] each (Qwen3-VL: a list, one entry a layer; Granite 4 Vision: a dictionary by layer)."""
    per_token: tuple[str, ...] = ()
    """[1, tokens, ...] each (Gemma3n and Gemma4: inputs for each layer)."""

    def rows(self, captured: Captured, is_embed: torch.Tensor) -> torch.Tensor:
        """The item's rows, [embeddings, hidden size * (1 + levels)]: each embedding with its levels behind it."""
        parts = [captured.embeddings[is_embed]]
        for path in self.levels:
            level = at(captured.extras, path)
            parts.append(level.reshape(parts[0].shape).to(parts[0]))
        return torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]


def classify(captured: Captured, is_embed: torch.Tensor, model_name: str) -> Extras:
    """Tell the extra arguments of one call apart.

    `is_embed` is bool [tokens], on the device of the embeddings. Raises `UnsupportedModelError` for what fits no kind,
    naming argument, type and shape.
    """
    levels: list[Path] = []
    per_token: list[str] = []
    rows, hidden = int(is_embed.sum()), captured.embeddings.shape[-1]
    for path, value in leaves(captured.extras):
        if isinstance(value, torch.Tensor):
            if _is_mask(value, is_embed):
                continue
            if value.is_floating_point() and value.numel() == rows * hidden and value.shape[-1] == hidden:
                levels.append(path)
                continue
            if value.ndim > 2 and value.shape[:2] == (1, len(is_embed)) and len(path) == 1:
                per_token.append(str(path[0]))
                continue
        shape = f" of shape {list(value.shape)}" if isinstance(value, torch.Tensor) else ""
        raise UnsupportedModelError(
            model_name,
            found=f"that its text model is given {'.'.join(map(str, path))}, {type(value).__name__}{shape}, beside"
            f" embeddings [{len(is_embed)}, {hidden}] of which {rows} are an item's",
            expected="embeddings, features of shape [item's embeddings, hidden size], masks of the item's places, or inputs"
            " of shape [1, tokens, ...]",
            do="Answers would be wrong without it, and this version doesn't know how to hand it on. Serve the model without"
            " these items: --limit-mm-per-prompt.",
        )
    return Extras(tuple(levels), tuple(per_token))


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value inside dictionaries and lists, with its path."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    elif value is not None:
        yield path, value


def at(value: Any, path: Path) -> Any:
    """The value at `path`."""
    for step in path:
        value = value[step]
    return value


def _is_mask(value: torch.Tensor, is_embed: torch.Tensor) -> bool:
    """Whether a tensor says where the embeddings go, for each token, or for each number of each (Granite 4 Vision)."""
    if value.dtype is not torch.bool or value.shape[:2] != (1, len(is_embed)):
        return False
    mask = value[0].reshape(len(is_embed), -1)
    return bool((mask == is_embed.to(mask.device)[:, None]).all())
