"""`hf-backend doctor --model`: the profile of a real checkpoint, measured in a process of its own by vLLM's own objects."""

import pytest

from compat.zoo.store import checkpoint
from hf_backend.cli.doctor import model_rows
from hf_backend.cli.facts import ask

pytestmark = pytest.mark.engine


def test_the_profile_says_what_the_processor_does() -> None:
    path = str(checkpoint("qwen2_vl"))
    model = ask("model", [path])
    assert "error" not in model, model
    assert model["architecture"] == "TransformersMultiModalForCausalLM"
    assert model["processor"] == "Qwen2VLProcessor"
    image = model["modalities"]["image"]
    assert image["placeholder"] == "<|image_pad|>"
    assert image["target_ids"] == image["embed_ids"]
    assert image["layouts"]["pixel_values"] == {"joining": "concatenated", "dim": 0, "exact": True}
    assert image["layouts"]["image_grid_thw"] == {"joining": "concatenated", "dim": 0, "exact": True}
    assert image["probe_calls"] <= 6
    assert 0 < image["largest"]["embeddings"] <= image["largest"]["tokens"] <= model["max_model_len"]
    printed = dict(model_rows(path, model))
    assert "'<|image_pad|>'" in printed["image"]
