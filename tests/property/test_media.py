"""Videos and clips: items depend on nothing but themselves, with and without the cache (C1, C2, C4)."""

import re
from typing import Any

import numpy as np
import pytest
import torch

from compat.expected import RIGHT
from compat.processors import FamilyProcessor, processor_of
from compat.zoo.registry import spec
from hf_backend.errors import RequestError
from hf_backend.probe import calls
from hf_backend.probe.samples import clip, metadata, video

pytestmark = pytest.mark.processing

FAMILIES = [(family, modality) for modality in ("video", "audio") for family in RIGHT[modality]]


def items_of(family: str, modality: str) -> list[Any]:
    if modality == "audio":
        return [clip(int(seconds * 16_000), seed) for seed, seconds in enumerate((0.7, 1.3, 0.4))]
    return [
        (video(*size, frames=frames, seed=frames), metadata(frames))
        for size, frames in (((112, 84), 4), ((64, 64), 8), ((224, 392), 2))
    ]


def video_arguments(processor: FamilyProcessor, frames: Any, about: Any) -> dict[str, Any]:
    """One video as transformers' own processor wants it: SmolVLM's takes a list of videos for each text."""
    nested = processor.processor.info.profile.modalities["video"].nested
    arguments = {"videos": [frames]} | ({} if about is None else {"video_metadata": [about]})
    return {name: [value] if nested else value for name, value in arguments.items()} | {"do_sample_frames": False}


def fields(output: dict[str, Any], modality: str) -> list[dict[str, Any]]:
    return [{name: elem.data for name, elem in item.items()} for item in output["mm_kwargs"][modality]]


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return torch.equal(one, other)


@pytest.mark.parametrize(("family", "modality"), FAMILIES)
def test_c1_c2_items_are_what_they_are_alone_cached_or_not(family: str, modality: str) -> None:
    plain, cached = processor_of(family, cached=False), processor_of(family, cached=True)
    placeholder = spec(family).placeholders[modality]
    items = items_of(family, modality)
    alone = [fields(plain(f"hear and see {placeholder}", {modality: [item]}), modality)[0] for item in items]
    prompt = f"a {placeholder} b {placeholder}{placeholder}"
    before = calls.count()
    cached(prompt, {modality: [items[0], items[1], items[0]]})
    assert calls.count() - before <= 3
    for order in ([0, 1, 2], [2, 1, 0], [1, 1, 2]):
        chosen = [items[index] for index in order]
        fresh, kept = plain(prompt, {modality: chosen}), cached(prompt, {modality: chosen})
        assert fresh["prompt_token_ids"] == kept["prompt_token_ids"]
        assert fresh["mm_placeholders"] == kept["mm_placeholders"]
        for index, one, other in zip(order, fields(fresh, modality), fields(kept, modality), strict=True):
            assert one.keys() == other.keys() == alone[index].keys()
            assert all(equal(one[name], other[name]) and equal(one[name], alone[index][name]) for name in one)
    before = calls.count()
    cached(prompt, {modality: items})
    assert calls.count() == before, "every item was in the cache"


@pytest.mark.parametrize(("family", "modality"), FAMILIES)
def test_c4_ids_are_those_of_transformers(family: str, modality: str) -> None:
    processor = processor_of(family, cached=False)
    placeholder = spec(family).placeholders[modality]
    hf_processor = processor.processor.info.get_hf_processor()
    for item in items_of(family, modality):
        prompt = f"so {placeholder}, what?"
        output = processor(prompt, {modality: [item]})
        if modality == "audio":
            expected = hf_processor(text=prompt, audio=[item], return_tensors="pt")
        else:
            frames, about = item
            expected = hf_processor(text=prompt, **video_arguments(processor, frames, about), return_tensors="pt")
        assert output["prompt_token_ids"] == expected["input_ids"][0].tolist()
        (place,) = output["mm_placeholders"][modality]
        (item_fields,) = fields(output, modality)
        assert place.get_num_embeds() == int(item_fields[f"{modality}.num_embeds"]) > 0


@pytest.mark.parametrize("family", RIGHT["video"])
def test_videos_of_any_length(family: str) -> None:
    """1, 2, 3, 5, 8 and 17 frames, with and without metadata: served, or refused where transformers refuses (GLM-4V takes
    no single frame)."""
    processor = processor_of(family, cached=False)
    hf_processor = processor.processor.info.get_hf_processor()
    prompt = f"see {spec(family).placeholders['video']}"
    for frames in (1, 2, 3, 5, 8, 17):
        shot = video(64, 64, frames)
        for item, about in ((shot, None), ((shot, metadata(frames)), metadata(frames))):
            try:
                expected = hf_processor(text=prompt, **video_arguments(processor, shot, about), return_tensors="pt")
            except ValueError as error:
                with pytest.raises(RequestError, match=re.escape(str(error))):
                    processor(prompt, {"video": [item]})
                continue
            assert processor(prompt, {"video": [item]})["prompt_token_ids"] == expected["input_ids"][0].tolist()


def test_pre_computed_embeddings_take_as_many_places_as_they_have_rows() -> None:
    """`--enable-mm-embeds`: one tensor an item, within the frame measured around a picture (InternVL: `<img>` … `</img>`)."""
    processor = processor_of("internvl", cached=False)
    processor.model_config.get_multimodal_config().enable_mm_embeds = True
    info = processor.processor.info
    hidden = processor.model_config.get_inputs_embeds_size()
    parsed = info.parse_mm_data({"image": [torch.randn(5, hidden), torch.randn(2, hidden)]})
    placeholder = spec("internvl").placeholders["image"]
    output = processor.processor(f"{placeholder} and {placeholder}", mm_items=parsed)
    assert [place.get_num_embeds() for place in output["mm_placeholders"]["image"]] == [5, 2]
    first = output["mm_placeholders"]["image"][0]
    head, tail = info.profile.modalities["image"].frame
    ids = output["prompt_token_ids"][first.offset : first.offset + first.length]
    assert ids[: len(head)] == list(head)
    assert ids[len(ids) - len(tail) :] == list(tail)


@pytest.mark.parametrize("counts", [(4, 4), (8, 8), (4, 8)])
def test_two_videos_of_smolvlm_with_text_between(counts: tuple[int, int]) -> None:
    """Equal numbers of frames: transformers' ids, at every seam. Unequal: its introduction of every video counts the longest
    one's frames, so that it would depend on its neighbours; here each is introduced as it is alone (C1)."""
    processor = processor_of("smolvlm", cached=True)
    place = spec("smolvlm").placeholders["video"]
    items = [(video(64, 64, frames, seed=frames + at), metadata(frames)) for at, frames in enumerate(counts)]
    hf_processor = processor.processor.info.get_hf_processor()
    for prompt in (f"First {place}, then {place}. Compare them.", f"{place}{place}", f"{place}\n{place}\n\n"):
        ids = processor(prompt, {"video": items})["prompt_token_ids"]
        data = {"videos": [[one for one, _ in items]], "video_metadata": [[about for _, about in items]]}
        expected = hf_processor(text=[prompt], **data, do_sample_frames=False, return_tensors="pt")["input_ids"][0]
        text, wanted = (processor.processor.info.get_tokenizer().decode(one) for one in (ids, expected.tolist()))
        if counts[0] == counts[1]:
            assert ids == expected.tolist()
        else:
            assert text.replace("of four frames", "of eight frames") == wanted != text


@pytest.mark.parametrize("shape", [(3,), (2, 3, 5), (0, 0), (4, 1)])
def test_pre_computed_embeddings_of_a_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    """A 4xx: `RequestError` and vLLM's own parser both raise a `ValueError`, before the engine sees anything."""
    processor = processor_of("internvl", cached=False)
    processor.model_config.get_multimodal_config().enable_mm_embeds = True

    def ask() -> None:
        parsed = processor.processor.info.parse_mm_data({"image": [torch.zeros(shape)]})
        processor.processor(spec("internvl").placeholders["image"], mm_items=parsed)

    # vLLM's parser takes tensors of one or three dimensions for pictures.
    with pytest.raises(ValueError, match=r"(?i)embedding|one image it can process"):
        ask()


@pytest.mark.parametrize("family", RIGHT["audio"])
@pytest.mark.parametrize("samples", [1, 150, 31 * 16_000])
def test_clips_shorter_than_a_frame_and_longer_than_the_window(family: str, samples: int) -> None:
    """Served with transformers' ids and as many places as embeddings, or refused for the item with the reason."""
    processor = processor_of(family, cached=False)
    prompt = f"hear {spec(family).placeholders['audio']} now"
    sound = clip(samples, seed=1)
    try:
        output = processor(prompt, {"audio": [sound]})
    except RequestError:
        assert samples < 400, "only a clip shorter than a frame may be refused"
        return
    (place,), (item,) = output["mm_placeholders"]["audio"], fields(output, "audio")
    assert place.get_num_embeds() == int(item["audio.num_embeds"]) > 0
    hf_processor = processor.processor.info.get_hf_processor()
    expected = hf_processor(text=prompt, audio=[sound], return_tensors="pt")["input_ids"][0].tolist()
    assert output["prompt_token_ids"] == expected


@pytest.mark.parametrize("family", RIGHT["audio"])
def test_stereo_and_another_rate_are_made_mono_at_the_extractors_rate(family: str) -> None:
    """A clip of two equal channels is the clip; one at twice the rate has the length it lasts."""
    processor = processor_of(family, cached=False)
    rate = int(processor.processor.info.get_data_parser().audio_resampler.target_sr)
    prompt = f"hear {spec(family).placeholders['audio']}"
    mono = clip(rate, seed=1)
    plain = processor(prompt, {"audio": [mono]})
    stereo = processor(prompt, {"audio": [(np.stack([mono, mono]), rate)]})
    assert stereo["prompt_token_ids"] == plain["prompt_token_ids"]
    (one,), (other,) = fields(plain, "audio"), fields(stereo, "audio")
    assert one.keys() == other.keys()
    assert all(equal(one[name], other[name]) for name in one)
    faster = processor(prompt, {"audio": [(clip(2 * rate, seed=1), 2 * rate)]})
    assert faster["prompt_token_ids"] == plain["prompt_token_ids"]
