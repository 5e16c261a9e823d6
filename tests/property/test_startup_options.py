"""`mm_processor_kwargs` at start-up: counts, the largest item and cache keys follow, as for options of a request (C2)."""

from typing import Any

import pytest

from compat.processors import processor_of
from compat.zoo.registry import spec
from hf_backend.probe.samples import metadata, picture, video

pytestmark = pytest.mark.processing

SMALL = {"size": {"shortest_edge": 28 * 28, "longest_edge": 28 * 28 * 9}}
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("qwen2_vl", "image", {"max_pixels": 28 * 28 * 16}),
    ("qwen2_vl", "image", SMALL),
    ("idefics3", "image", {"do_image_splitting": False}),
    ("gemma3", "image", {"do_pan_and_scan": True, "pan_and_scan_min_crop_size": 32}),
    ("qwen2_vl", "video", SMALL),
]
VIDEO_OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("qwen2_vl", {"size": {"shortest_edge": 28 * 28, "longest_edge": 28 * 28 * 9}}),
    ("qwen2_vl", {"do_sample_frames": True, "num_frames": 4}),
    ("qwen2_5_vl", {"do_sample_frames": True, "fps": 1.0}),
    ("qwen3_vl", {"do_sample_frames": True, "fps": 1.0}),
    ("llava_onevision", {"do_sample_frames": True, "num_frames": 3}),
    ("internvl", {"do_sample_frames": True, "num_frames": 2}),
]


def item_of(modality: str) -> Any:
    return picture(300, 200, seed=1) if modality == "image" else (video(112, 84, frames=8, seed=2), metadata(8))


def num_embeds(output: dict[str, Any], modality: str) -> int:
    (place,) = output["mm_placeholders"][modality]
    return int(place.get_num_embeds())


def hf_ids(processor: Any, prompt: str, modality: str, options: dict[str, Any]) -> list[int]:
    item = item_of(modality)
    data = {"images": [item]} if modality == "image" else {"videos": [item[0]], "video_metadata": [item[1]]}
    asked = ({} if modality == "image" else {"do_sample_frames": False}) | options
    hf_processor = processor.processor.info.get_hf_processor(**options)
    ids: list[int] = hf_processor(text=prompt, **data, **asked, return_tensors="pt")["input_ids"][0].tolist()
    return ids


@pytest.mark.parametrize(("family", "modality", "options"), CASES)
def test_c2_options_at_start_up(family: str, modality: str, options: dict[str, Any]) -> None:
    plain = processor_of(family, cached=True)
    started = processor_of(family, cached=True, start_up=options)
    prompt = f"see {spec(family).placeholders[modality]} now"
    items = {modality: [item_of(modality)]}
    output, other = started(prompt, items), plain(prompt, items)
    assert output["prompt_token_ids"] == hf_ids(plain, prompt, modality, options)
    assert other["prompt_token_ids"] == hf_ids(plain, prompt, modality, {})
    assert output["prompt_token_ids"] != other["prompt_token_ids"], "the option has to change something"
    assert output["prompt_token_ids"] == plain(prompt, items, **options)["prompt_token_ids"], "as in a request"
    (place,) = output["mm_placeholders"][modality]
    largest = started.processor.info.largest_item(modality, 2048)
    most = started.processor.info.get_mm_max_tokens_per_item(2048, {modality: 1})[modality]
    assert place.get_num_embeds() <= largest.num_embeds == most
    # Idefics3's own counter writes options into the defaults of its class, for every processor of the process.
    assert most != plain.processor.info.largest_item(modality, 2048).num_embeds
    assert plain.processor.info.alone(modality)(items[modality][0], {}).expansion.num_embeds == num_embeds(
        other, modality
    )


@pytest.mark.parametrize(("family", "options"), VIDEO_OPTIONS)
def test_c2_options_for_a_video(family: str, options: dict[str, Any]) -> None:
    processor = processor_of(family, cached=True)
    prompt = f"see {spec(family).placeholders['video']} now"
    items = {"video": [item_of("video")]}
    output, other = processor(prompt, items, **options), processor(prompt, items)
    assert output["prompt_token_ids"] == hf_ids(processor, prompt, "video", options)
    assert output["prompt_token_ids"] != other["prompt_token_ids"], "the option has to change something"
    assert output["mm_hashes"] != other["mm_hashes"]
    (place,), (item,) = output["mm_placeholders"]["video"], output["mm_kwargs"]["video"]
    assert place.get_num_embeds() == int(item["video.num_embeds"].data)
