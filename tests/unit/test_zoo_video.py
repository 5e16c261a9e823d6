"""Videos of the tiny checkpoints: transformers takes them, and another video changes the answer.

Without this a family whose video never reaches the model would pass every comparison.
"""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoProcessor
from transformers.video_utils import VideoMetadata

from compat.parity.reference import load_class
from compat.zoo import checkpoint, families, spec
from compat.zoo.pictures import picture
from hf_backend.check.compare import TOLERANCE

FRAMES, RATE = 4, 2.0
SIZE = (64, 48)


def _video(seed: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """[frames, height, width, 3]: one scene after another."""
    return np.stack([np.asarray(picture(*SIZE, seed + number)) for number in range(FRAMES)])


@pytest.mark.parametrize("family", families("video"))
def test_a_video_changes_the_answer(family: str) -> None:
    """Other frames, the same frames backwards, and the first of two videos all change the log-probabilities."""
    folder = checkpoint(family)
    processor = AutoProcessor.from_pretrained(folder)
    model = load_class(family).from_pretrained(folder, dtype=torch.float32).eval()
    placeholder = spec(family).placeholders["video"]

    def answer(*videos: "np.ndarray[Any, np.dtype[np.uint8]]") -> torch.Tensor:
        text = spec(family).prompt(["Watch ", *[placeholder] * len(videos), " and say what happens."])
        metadata = [
            VideoMetadata(total_num_frames=FRAMES, fps=RATE, duration=FRAMES / RATE, frames_indices=list(range(FRAMES)))
            for _ in videos
        ]
        # SmolVLM counts the videos of each prompt, so it wants a list a prompt.
        nested = family == "smolvlm"
        inputs = processor(
            text=[text],
            videos=[list(videos)] if nested else list(videos),
            video_metadata=[metadata] if nested else metadata,
            do_sample_frames=False,
            return_tensors="pt",
        ).to(torch.float32)
        with torch.no_grad():
            output = model.generate(
                **inputs, max_new_tokens=1, do_sample=False, return_dict_in_generate=True, output_logits=True
            )
        return torch.log_softmax(output.logits[0][0].float(), -1)

    first, other, second = _video(1), _video(11), _video(21)
    plain = answer(first)
    for name, changed in (("other", answer(other)), ("backwards", answer(first[::-1].copy()))):
        assert (plain - changed).abs().max() > 50 * TOLERANCE, name
    assert (answer(first, second) - answer(other, second)).abs().max() > 50 * TOLERANCE
