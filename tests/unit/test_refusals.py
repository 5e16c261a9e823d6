"""Requests whose placeholders and items don't fit are refused with what was found and expected (C4, C7, C11)."""

import numpy as np
import pytest
from PIL import Image

from hf_backend.errors import RequestError
from hf_backend.processing.refusals import check_counts, refuse_empty

pytestmark = pytest.mark.processing

IMAGE = 7


def check(prompt: list[int], items: dict[str, int]) -> list[int]:
    found = check_counts("TinyProcessor", prompt, {"image": [IMAGE]}, {"image": "<image>"}, items)
    return [target.start for target in found]


def test_c4_as_many_placeholders_as_items() -> None:
    assert check([1, IMAGE, IMAGE, 2], {"image": 2}) == [1, 2]
    assert check([1, 2], {}) == []


def test_c7_without_items_a_placeholder_is_a_token_like_any_other() -> None:
    assert check([1, IMAGE, 2], {}) == []
    assert check([1, IMAGE, 2], {"image": 0}) == []


@pytest.mark.parametrize(
    ("prompt", "items", "says"),
    [
        (
            [1, 2],
            1,
            r"found 0 image placeholder\(s\) '<image>' in the prompt for 1 image item\(s\); expected exactly 1",
        ),
        ([IMAGE], 2, r"found 1 image placeholder\(s\).*for 2 image item\(s\).*Put one placeholder for each item"),
        ([IMAGE, 1, IMAGE], 1, r"found 2 image placeholder\(s\).*for 1 image item\(s\).*literal placeholders"),
    ],
    ids=["none", "too few", "too many"],
)
def test_c4_c7_counts_that_do_not_fit(prompt: list[int], items: int, says: str) -> None:
    with pytest.raises(RequestError, match=says) as error:
        check(prompt, {"image": items})
    assert isinstance(error.value, ValueError), "vLLM's server answers a ValueError with a 4xx"


def test_items_of_a_modality_not_served() -> None:
    with pytest.raises(RequestError, match=r"found 1 audio item\(s\); expected items of \['image'\] only"):
        check([IMAGE], {"image": 1, "audio": 1})


@pytest.mark.parametrize(
    ("modality", "item"),
    [("audio", np.zeros(0, np.float32)), ("video", (np.zeros((0, 8, 8, 3), np.uint8), {}))],
    ids=["a clip without samples", "a video without frames"],
)
def test_empty_items_are_refused(modality: str, item: object) -> None:
    """R36, R40: zero samples and zero frames are the request's fault, whatever a processor makes of them."""
    with pytest.raises(RequestError, match=f"TinyProcessor: found an empty {modality}, of shape"):
        refuse_empty("TinyProcessor", modality, [item])


def test_items_with_contents_are_not_refused() -> None:
    refuse_empty("TinyProcessor", "image", [Image.new("RGB", (1, 1)), None])
    refuse_empty("TinyProcessor", "audio", [np.zeros(1, np.float32)])
