"""Items that aren't in the cache: as few calls of the HF processor as are certain to give what each item is alone.

Takes a modality's new items of one request; gives their records in the same order, at most one call an item. An item that is
there twice is processed once; where the profile found a certain split, all of them are one call.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from hf_backend.probe.profile import profile_key
from hf_backend.probe.together import together
from hf_backend.processing.info import ProcessingInfo
from hf_backend.records import Item

JOINT_PIXELS = 2**19
"""Pictures up to this many pixels share a call. A call costs about a millisecond besides its items' own work (four of 640x480:
1.1 to 1.7 times as fast in one call); from a megapixel on that is lost in the work, and packed pictures of Qwen2-VL are then a
third slower in one call (`compat.bench.calls`)."""


_in_vain: set[tuple[str, str, str]] = set()
"""Processors and modalities whose items could be processed alone where a joint call had failed: it isn't made again, so that from
then on N items take N calls."""


def process_new(
    info: ProcessingInfo, modality: str, items: Sequence[object], hf_kwargs: Mapping[str, object]
) -> list[Item]:
    """One record an item. Raises `RequestError` for an item the processor refuses.

    Only the start-up options were measured, so items of a request with options of its own are processed alone. A joint call that
    fails is followed by calls of each item, which say whose fault it is: an item's own, and the request is refused, or the joint
    call's, and no other is made in this process.
    """
    first_of = _first_of(items)
    distinct = sorted(set(first_of))
    alone, profile = info.alone(modality), info.modality_profile(modality)
    made: list[Item] | None = None
    tried = False
    if len(distinct) > 1 and profile.joint is not None and not hf_kwargs and all(map(_is_small, items)):
        key = (profile_key(info), info.profile.processor_class, modality)
        if tried := key not in _in_vain:
            made = together(alone, [items[index] for index in distinct], profile.joint, profile.layouts)
    if made is None:
        made = [alone(items[index], hf_kwargs) for index in distinct]
        if tried:
            _in_vain.add(key)
    by_index = dict(zip(distinct, made, strict=True))
    return [by_index[index] for index in first_of]


def _is_small(item: object) -> bool:
    """Whether a call's own cost shows beside the item's; what isn't a picture is small."""
    return not isinstance(item, Image.Image) or item.width * item.height <= JOINT_PIXELS


def _first_of(items: Sequence[object]) -> list[int]:
    """For each item, the index of the first one that is equal to it."""
    first: list[int] = []
    for index, item in enumerate(items):
        equal = (other for other in sorted(set(first)) if is_same(items[other], item))
        first.append(next(equal, index))
    return first


def is_same(one: Any, other: Any) -> bool:
    """Whether two items are equal in contents; items of kinds unknown here only if they are one object."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Image.Image):
        return bool(one.size == other.size and one == other)
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    return isinstance(one, (bool, int, float, str)) and one == other
