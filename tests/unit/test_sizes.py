"""The largest item is measured; a processor's own counter is used only where it agrees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_backend.probe.sizes import (
    COARSE_SIDES,
    LargestItem,
    agrees,
    climb,
    fine_sizes,
    helper_count,
    largest,
    picture_steps,
)

pytestmark = pytest.mark.processing


def by_area(patch: int, most: int):  # type: ignore[no-untyped-def]
    """A processor that resizes by area, like Qwen2-VL: patches of the picture, never more than `most`."""

    def count(size: tuple[int, int]) -> tuple[int, int]:
        patches = min(max(size[0] // patch, 1) * max(size[1] // patch, 1), most)
        return patches + 2, patches

    return count


@given(st.integers(1, 4000), st.integers(8, 64))
def test_the_most_embeddings_with_the_smallest_picture(most: int, patch: int) -> None:
    found = largest(fine_sizes(), by_area(patch, most), limit=10**9)
    assert found is not None
    assert found.num_embeds == most
    smaller = [size for size in fine_sizes() if size[0] * size[1] < found.size[0] * found.size[1]]
    assert all(by_area(patch, most)(size)[1] < most for size in smaller)


@given(st.integers(3, 500))
def test_the_limit_holds_for_the_whole_expansion(limit: int) -> None:
    found = largest(fine_sizes(), by_area(32, 10**6), limit)
    assert found is not None
    assert found.num_tokens <= limit or found.num_tokens == by_area(32, 10**6)((64, 64))[0]


def test_where_everything_is_too_long_the_shortest_is_profiled() -> None:
    """The engine then refuses such items by length; start-up must not fail for it."""
    assert largest([(64, 64), (128, 64)], lambda size: (size[0], 9), limit=5) == LargestItem((64, 64), 64, 9)


def test_refused_sizes_are_passed_over() -> None:
    assert largest([(64, 64), (128, 128)], lambda size: None if size[0] < 100 else (3, 2), 10) == LargestItem(
        (128, 128), 3, 2
    )
    assert largest([(64, 64)], lambda size: None, 10) is None


def test_measuring_stops_when_two_octaves_bring_nothing() -> None:
    """LLaVA resizes every picture to one size: no 2048 x 6144 picture is ever processed."""
    seen = []

    def count(size: tuple[int, int]) -> tuple[int, int]:
        seen.append(size)
        return 576, 576

    assert climb(picture_steps(), count, 4096) == LargestItem((64, 64), 576, 576)
    assert max(max(size) for size in seen) <= 3 * COARSE_SIDES[2]


def test_measuring_finds_the_size_that_counts() -> None:
    found = climb(picture_steps(), by_area(28, 1000), 4096)
    assert found is not None
    assert found.num_embeds == 1000


class Processor:
    def __init__(self, off: int = 0) -> None:
        self.off = off

    def _get_num_multimodal_tokens(self, image_sizes: list[list[int]]) -> dict[str, list[int]]:
        return {"num_image_tokens": [height * width + self.off for height, width in image_sizes]}


class Failing(Processor):
    def _get_num_multimodal_tokens(self, image_sizes: list[list[int]]) -> dict[str, list[int]]:
        raise KeyError("size")


def test_a_helper_that_is_wrong_once_is_not_used() -> None:
    def count(size: tuple[int, int]) -> tuple[int, int]:
        return 99, size[0] * size[1]

    assert agrees(helper_count(Processor()), count, [(2, 3), (4, 5)])
    assert not agrees(helper_count(Processor(off=1)), count, [(2, 3)])
    assert not agrees(helper_count(object()), count, [(2, 3)])
    assert not agrees(helper_count(Failing()), count, [(2, 3)])
