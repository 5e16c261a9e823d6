"""A video and its sound woven into one another (`use_audio_in_video`): the prompt is what transformers makes of it for any
lengths; items are what they are alone (C1), cached or not (C2); what can't be woven is refused before the cache sees it (C11)."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compat.processors import FamilyProcessor, processor_of
from compat.zoo.registry import spec
from hf_backend.errors import RequestError
from hf_backend.probe import calls
from hf_backend.probe.samples import clip, metadata, picture, video

pytestmark = pytest.mark.processing

FAMILIES = ("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker")
OPTION = "use_audio_in_video"
VIDEOS = [
    (video(*size, frames=frames, seed=frames), metadata(frames))
    for *size, frames in ((64, 64, 4), (112, 84, 8), (90, 50, 2), (64, 64, 14))
]
CLIPS = [clip(samples, seed) for seed, samples in enumerate((8_000, 11_200, 40_001, 100_000))]
PICTURES = [picture(64, 64, 1), picture(112, 84, 2)]

Part = tuple[str, int, int]
"""Kind, and the numbers of its items."""
parts = st.lists(
    st.tuples(st.sampled_from(("woven", "woven", "image", "audio")), st.integers(0, 3), st.integers(0, 3)),
    min_size=1,
    max_size=3,
).filter(lambda chosen: any(kind == "woven" for kind, _, _ in chosen))


@functools.cache
def fresh(family: str) -> FamilyProcessor:
    return processor_of(family, cached=False)


@functools.cache
def cached(family: str) -> FamilyProcessor:
    return processor_of(family, cached=True)


def prompt_of(family: str, chosen: Sequence[Part], *, as_chat: bool = False) -> str:
    """As transformers takes it, or as vLLM's chat makes it: with a placeholder for the sound as well."""
    placeholders = spec(family).placeholders
    texts = {
        "woven": placeholders["video"] + placeholders["audio"] * as_chat,
        "image": placeholders["image"],
        "audio": placeholders["audio"],
    }
    return "see " + " and ".join(texts[kind] for kind, _, _ in chosen) + " now"


def items_of(chosen: Sequence[Part]) -> dict[str, list[Any]]:
    items: dict[str, list[Any]] = {"image": [], "video": [], "audio": []}
    for kind, first, second in chosen:
        if kind == "image":
            items["image"].append(PICTURES[first % len(PICTURES)])
            continue
        if kind == "woven":
            items["video"].append(VIDEOS[first])
        items["audio"].append(CLIPS[second])
    return items


def hf_ids(family: str, prompt: str, items: Mapping[str, Sequence[Any]]) -> list[int]:
    data: dict[str, Any] = {"videos": [item[0] for item in items["video"]], "audio": list(items["audio"])}
    if items["image"]:
        data["images"] = list(items["image"])
    output = fresh(family).processor.info.get_hf_processor()(
        text=prompt,
        video_metadata=[item[1] for item in items["video"]],
        do_sample_frames=False,
        return_tensors="pt",
        **data,
        **{OPTION: True},
    )
    ids: list[int] = output["input_ids"][0].tolist()
    return ids


def fields(output: Mapping[str, Any], modality: str) -> list[dict[str, Any]]:
    return [{name: elem.data for name, elem in item.items()} for item in output["mm_kwargs"][modality]]


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(chosen=parts)
def test_c1_c2_c6_any_videos_with_any_sounds(family: str, chosen: list[Part]) -> None:
    prompt, items = prompt_of(family, chosen), items_of(chosen)
    output = fresh(family)(prompt, items, **{OPTION: True})
    assert output["prompt_token_ids"] == hf_ids(family, prompt, items)

    ids = torch.tensor(output["prompt_token_ids"])
    profiles = fresh(family).processor.info.profile.modalities
    taken = torch.zeros(len(ids), dtype=torch.int64)
    for modality, places in output["mm_placeholders"].items():
        embed_ids = torch.tensor(sorted(profiles[modality].embed_ids))
        seen = torch.zeros_like(taken)
        for place, item, raw in zip(places, fields(output, modality), items[modality], strict=True):
            span = slice(place.offset, place.offset + place.length)
            seen[span] += place.is_embed
            assert place.get_num_embeds() == int(item[f"{modality}.num_embeds"])
            (alone,) = fields(fresh(family)(spec(family).placeholders[modality], {modality: [raw]}), modality)
            assert item.keys() == alone.keys()
            assert all(torch.equal(torch.as_tensor(item[name]), torch.as_tensor(alone[name])) for name in item), "C1"
        assert torch.equal(seen, torch.isin(ids, embed_ids).long()), "every place is one item's"
        taken += seen
    assert int(taken.max()) == 1

    first = cached(family)(prompt, items, **{OPTION: True})
    before = calls.count()
    second = cached(family)(prompt, items, **{OPTION: True})
    assert calls.count() == before, "C2: all is in the cache"
    assert first["prompt_token_ids"] == second["prompt_token_ids"] == output["prompt_token_ids"]


@pytest.mark.parametrize("family", FAMILIES)
def test_c2_items_are_shared_with_requests_that_do_not_weave(family: str) -> None:
    processor = processor_of(family, cached=True)
    items = {"image": [], "video": [VIDEOS[0]], "audio": [CLIPS[0]]}
    placeholders = spec(family).placeholders
    plain = processor(placeholders["video"] + placeholders["audio"], items)
    before = calls.count()
    woven = processor(placeholders["video"], items, **{OPTION: True})
    assert woven["mm_hashes"] == plain["mm_hashes"]
    assert calls.count() - before <= 3, "the pair's, and two to find out how pairs are asked for"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_prompt_of_a_chat(family: str) -> None:
    """vLLM's chat takes the sound from the video and puts a placeholder for it behind the video's."""
    chosen: list[Part] = [("woven", 0, 1), ("image", 0, 0), ("woven", 1, 2)]
    prompt, items = prompt_of(family, chosen), items_of(chosen)
    plain = fresh(family)(prompt, items, **{OPTION: True})
    chat = fresh(family)(prompt_of(family, chosen, as_chat=True), items, **{OPTION: True})
    assert chat["prompt_token_ids"] == plain["prompt_token_ids"] == hf_ids(family, prompt, items)
    assert chat["mm_placeholders"] == plain["mm_placeholders"]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_option_at_start_up(family: str) -> None:
    """It holds for every request with videos; others, and the probes, do without."""
    started = processor_of(family, cached=False, start_up={OPTION: True})
    chosen: list[Part] = [("woven", 0, 1)]
    prompt, items = prompt_of(family, chosen), items_of(chosen)
    assert started(prompt, items)["prompt_token_ids"] == hf_ids(family, prompt, items)
    alone = {"audio": [CLIPS[0]]}
    prompt = f"hear {spec(family).placeholders['audio']}"
    assert started(prompt, alone)["prompt_token_ids"] == fresh(family)(prompt, alone)["prompt_token_ids"]
    placeholders = spec(family).placeholders
    apart, items = placeholders["video"] + placeholders["audio"], {"video": [VIDEOS[0]], "audio": [CLIPS[0]]}
    unwoven = started(apart, items, **{OPTION: False})
    assert unwoven["prompt_token_ids"] == fresh(family)(apart, items)["prompt_token_ids"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("text", "videos", "clips"), [("{video}", 1, 0), ("{video}{video}", 2, 1), ("<|VIDEO|>", 1, 1), ("{audio}", 1, 1)]
)
def test_c11_what_does_not_fit_is_refused_before_the_cache(family: str, text: str, videos: int, clips: int) -> None:
    processor = processor_of(family, cached=True)
    items = {"video": VIDEOS[:videos], "audio": CLIPS[:clips]}
    processor.processor.info.weave(OPTION)
    before = calls.count()
    with pytest.raises(RequestError, match=f"Send audio with every video, or leave out {OPTION}"):
        processor(text.format(**spec(family).placeholders), items, **{OPTION: True})
    assert calls.count() == before


def test_a_processor_that_does_not_weave_says_so() -> None:
    processor = processor_of("gemma4", cached=False)
    items = {"video": [VIDEOS[0]], "audio": [CLIPS[0]]}
    with pytest.raises(RequestError, match=r"Gemma4Processor: found mm_processor_kwargs with use_audio_in_video"):
        processor(spec("gemma4").placeholders["video"], items, **{OPTION: True})
