"""`mm_processor_kwargs` of a request: the prompt is what transformers makes of the same options, items stay what they are alone,
and the cache never gives an item that was made with other options."""

from typing import Any

import pytest
import torch

from compat.processors import FamilyProcessor, processor_of
from compat.zoo.registry import spec
from hf_backend.probe import calls
from hf_backend.probe.samples import picture

pytestmark = pytest.mark.processing

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("qwen2_vl", {"max_pixels": 28 * 28 * 16}),
    ("qwen2_vl", {"size": {"shortest_edge": 28 * 28, "longest_edge": 28 * 28 * 9}}),
    ("idefics3", {"do_image_splitting": False}),
    ("smolvlm", {"do_image_splitting": False}),
    ("gemma3", {"do_pan_and_scan": True, "pan_and_scan_min_crop_size": 32, "pan_and_scan_min_ratio_to_activate": 1.1}),
    ("got_ocr2", {"crop_to_patches": True}),
    ("internvl", {"crop_to_patches": False}),
]
PICTURES = [picture(300, 90, seed=1), picture(224, 392, seed=2)]


@pytest.fixture(params=OPTIONS, ids=lambda case: f"{case[0]}-{'-'.join(case[1])}")
def case(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    found: tuple[str, dict[str, Any]] = request.param
    return found


def hf_ids(processor: FamilyProcessor, prompt: str, options: dict[str, Any]) -> list[int]:
    hf_processor = processor.processor.info.get_hf_processor(**options)
    ids: list[int] = hf_processor(text=prompt, images=PICTURES, return_tensors="pt", **options)["input_ids"][0].tolist()
    return ids


def fields(output: dict[str, Any]) -> list[dict[str, torch.Tensor]]:
    return [{name: elem.data for name, elem in item.items()} for item in output["mm_kwargs"]["image"]]


def test_c2_options_change_the_prompt_as_in_transformers(case: tuple[str, dict[str, Any]]) -> None:
    family, options = case
    placeholder = spec(family).placeholders["image"]
    prompt = f"see {placeholder} and {placeholder}\nwhat?"
    processor = processor_of(family, cached=True)
    plain = processor(prompt, {"image": PICTURES})
    changed = processor(prompt, {"image": PICTURES}, **options)
    assert plain["prompt_token_ids"] == hf_ids(processor, prompt, {})
    assert changed["prompt_token_ids"] == hf_ids(processor, prompt, options)
    assert changed["prompt_token_ids"] != plain["prompt_token_ids"], "the option has to change something"
    assert changed["mm_hashes"] != plain["mm_hashes"]
    for place, item in zip(changed["mm_placeholders"]["image"], fields(changed), strict=True):
        assert place.get_num_embeds() == int(item["image.num_embeds"]) > 0
    before = calls.count()
    assert processor(prompt, {"image": PICTURES}, **options)["prompt_token_ids"] == changed["prompt_token_ids"]
    assert processor(prompt, {"image": PICTURES})["prompt_token_ids"] == plain["prompt_token_ids"]
    assert calls.count() == before, "both are in the cache"


def test_c1_an_item_is_what_it_is_alone_with_the_same_options(case: tuple[str, dict[str, Any]]) -> None:
    family, options = case
    placeholder = spec(family).placeholders["image"]
    processor = processor_of(family, cached=False)
    together = fields(processor(f"{placeholder}{placeholder}", {"image": PICTURES}, **options))
    for item, one in zip(together, PICTURES, strict=True):
        (alone,) = fields(processor(placeholder, {"image": [one]}, **options))
        assert item.keys() == alone.keys()
        assert all(torch.equal(item[name], alone[name]) for name in item)
