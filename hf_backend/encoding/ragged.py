"""Whether an encoder takes no notice of padding, so that items of several sizes may share a call.

Takes a function that runs the encoder on joined fields, two items of different sizes and what each gives alone; gives yes or no.
Equal embeddings aren't enough: in bfloat16 a little of the padding would pass for rounding. What the padding holds must make no
difference, bit for bit (Pixtral cuts it off).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from hf_backend.encoding.buckets import Fields, join
from hf_backend.records import FieldLayout

if TYPE_CHECKING:
    from hf_backend.records import FieldValue

GARBAGE = 3.0
"""What nothing may be made of: of the size of a normalised pixel or a feature of sound."""


def ignores_padding(
    run: "Callable[[Mapping[str, FieldValue]], torch.Tensor]",
    items: Sequence[Fields],
    layouts: Mapping[str, FieldLayout],
    is_right: Callable[[torch.Tensor], bool],
) -> bool:
    """Whether `items`, padded to one size, give what `is_right` takes, and the same whatever the padding holds."""
    if any(isinstance(value, list) for fields in items for value in fields.values()):
        return False
    try:
        zeros, garbage = (run(join(items, layouts, fill)) for fill in (0.0, GARBAGE))
    except (ValueError, TypeError, RuntimeError, IndexError):
        return False  # sizes that can't be padded: a grid says another number of patches
    return is_right(zeros) and torch.equal(zeros, garbage)
