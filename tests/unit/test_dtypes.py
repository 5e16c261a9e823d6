"""Fields have the model's dtype, whatever the processor makes, but for numbers that positions are made from."""

from typing import Any

import pytest
import torch

from compat.processors import processor_for
from compat.zoo.store import checkpoint
from hf_backend.plugin import register
from hf_backend.probe.samples import metadata, picture, video

pytestmark = pytest.mark.processing


def info(family: str, dtype: str) -> Any:
    from vllm.config import ModelConfig

    register()
    config = ModelConfig(model=str(checkpoint(family)), model_impl="transformers", dtype=dtype, max_model_len=2048)
    return processor_for(config, cached=False).processor.info


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_processor_with_a_dtype_of_its_own(dtype: str) -> None:
    """Llama 4's gives pictures in bfloat16."""
    found = info("llama4", dtype)
    raw = found.get_hf_processor()(text="<|image|>", images=[picture(50, 70)], return_tensors="pt")
    assert raw["pixel_values"].dtype == torch.bfloat16
    item = found.alone("image")(picture(50, 70), {})
    assert item.fields["pixel_values"].dtype == getattr(torch, dtype)


def test_seconds_between_frames_stay_as_they_are() -> None:
    """Qwen2.5-VL counts positions in seconds: two frames of three a second are 0.6667 apart, in bfloat16 0.6680, which makes other
    positions from some 200 frames on (and with the 25 positions a second of the Omnis from 20)."""
    frames = video(56, 56, frames=6)
    item = info("qwen2_5_vl", "bfloat16").alone("video")((frames, metadata(6, fps=3.0)), {})
    assert item.fields["pixel_values_videos"].dtype == torch.bfloat16
    assert item.fields["second_per_grid_ts"].tolist() == pytest.approx([2 / 3], abs=1e-7)
    assert item.fields["second_per_grid_ts"].bfloat16().tolist() != pytest.approx([2 / 3], abs=1e-4)
