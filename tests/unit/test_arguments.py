"""From items to an HF processor's arguments: metadata reaches it, and nothing is sampled twice."""

import numpy as np
import pytest

from hf_backend.modalities import AUDIO, IMAGE, VIDEO
from hf_backend.probe.arguments import arguments
from hf_backend.probe.samples import metadata

pytestmark = pytest.mark.processing

FRAMES = np.zeros((2, 4, 4, 3), dtype=np.uint8)


def test_pictures_and_clips_are_handed_on() -> None:
    assert arguments(IMAGE, ["picture"]) == ({"images": ["picture"]}, {})
    assert arguments(AUDIO, ["clip"]) == ({"audio": ["clip"]}, {})


def test_a_video_comes_with_its_metadata_and_is_not_sampled_again() -> None:
    """vLLM's loader sampled it; Qwen2.5-VL's default keeps every frame, SmolVLM's would sample again."""
    data, options = arguments(VIDEO, [(FRAMES, {**metadata(2), "do_sample_frames": False})])
    assert data["video_metadata"] == [metadata(2)]
    assert options == {"do_sample_frames": False}


def test_a_video_whose_metadata_asks_for_sampling_is_sampled() -> None:
    _, options = arguments(VIDEO, [(FRAMES, {**metadata(2), "do_sample_frames": True})])
    assert options == {"do_sample_frames": True}


def test_a_video_without_metadata() -> None:
    data, options = arguments(VIDEO, [(FRAMES, {})])
    assert data.keys() == {"videos"}
    assert options == {"do_sample_frames": False}
