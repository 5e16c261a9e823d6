"""At most N calls for N new items, also where the one call for all of them turns out not to work (R70)."""

from typing import Any

import pytest

from compat.processors import processor_with
from hf_backend import versions
from hf_backend.errors import RequestError
from hf_backend.probe import calls
from hf_backend.probe.samples import picture

pytestmark = [
    pytest.mark.processing,
    pytest.mark.skipif(versions.preferred_strategy() == "legacy", reason="joint calls are split by offsets"),
]

MOST_PIXELS = 400_000


def test_a_joint_call_that_fails_is_not_made_again() -> None:
    """A processor with a bound on the pixels of a call: the probe's pictures are below it, three of a request aren't."""
    from transformers import LlavaProcessor

    class Bounded(LlavaProcessor):  # type: ignore[misc]
        def __call__(self, images: Any = None, text: Any = None, **options: Any) -> Any:
            pictures = images if isinstance(images, list) else [images]
            if sum(one.width * one.height for one in pictures) > MOST_PIXELS:
                raise ValueError("too many pixels in one call")
            return super().__call__(images=images, text=text, **options)

    processor = processor_with("llava", Bounded)
    assert processor.info.profile.modalities["image"].joint is not None

    def count(*sizes: tuple[int, int], seed: int) -> int:
        pictures = [picture(*size, seed=seed + at) for at, size in enumerate(sizes)]
        items = processor.info.parse_mm_data({"image": pictures})
        before = calls.count()
        made = processor("<image>" * len(pictures), mm_items=items, hf_processor_mm_kwargs={})
        assert len(made["mm_placeholders"]["image"]) == len(pictures)
        return calls.count() - before

    small, middle, large = (100, 100), (500, 400), (1000, 700)
    assert count(small, small, small, seed=1) == 1
    with pytest.raises(RequestError, match="too many pixels"):
        count(small, large, seed=2)
    with pytest.raises(RequestError, match="too many pixels"):
        count(small, (650, 650), seed=3)
    assert count(small, small, seed=4) == 1, "an item's own fault says nothing of joint calls"
    assert count(middle, middle, middle, seed=5) == 4, "found out: once a process"
    assert count(middle, middle, middle, seed=6) == 3
    assert count(small, small, seed=7) == 2
