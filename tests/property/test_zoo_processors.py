"""Every tiny processor of the zoo, all of its modalities, any mix and order of them, at several hit rates of the cache.

C1: an item's fields are those it has alone (R04, R06). C2: cached and uncached are equal bit for bit. C4: as many places as
embeddings. C11: counts that don't fit are refused before any call (R42). At most one call for each new item, none for those in
the cache (R70). `HF_BACKEND_CASES` is the number of generated requests a family: `make test-long` asks for 48, over 2,000 in all.
"""

import dataclasses
import functools
import os
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compat.expected import NOT_YET
from compat.processors import FamilyProcessor, processor_of
from compat.zoo.registry import families, spec
from hf_backend.errors import RequestError
from hf_backend.probe import calls
from hf_backend.probe.profile import STRATEGIES
from hf_backend.probe.samples import clip, metadata, picture, video

pytestmark = pytest.mark.processing

CASES = int(os.environ.get("HF_BACKEND_CASES", "8"))
HIT_RATES = (0.0, 0.3, 0.5, 1.0)
TEXTS = ("", " ", "\n", "look at ", ", then\n\n", "<b>", "word")

ITEMS: Mapping[str, Sequence[Any]] = {
    "image": [
        picture(*size, seed)
        for seed, size in enumerate([(64, 64), (64, 64), (112, 84), (50, 90), (224, 100), (33, 35)])
    ],
    "video": [
        (video(*size, frames=frames, seed=frames), metadata(frames))
        for *size, frames in ((64, 64, 4), (64, 64, 8), (112, 84, 4), (90, 50, 2))
    ],
    "audio": [clip(samples, seed) for seed, samples in enumerate((8_000, 8_000, 11_200, 16_001, 24_100))],
}

requests = st.tuples(
    st.lists(
        st.tuples(st.sampled_from(TEXTS), st.sampled_from(("image", "video", "audio")), st.integers(0, 5)),
        min_size=1,
        max_size=4,  # the limit of videos and clips in `compat.processors`
    ),
    st.sampled_from(("", " what is it?", "\n", "attached")),
    st.sampled_from(HIT_RATES),
    st.integers(0, 10**6),
)


@functools.cache
def fresh(family: str) -> FamilyProcessor:
    return processor_of(family, cached=False)


@functools.cache
def served(family: str) -> tuple[str, ...]:
    """The modalities that the family's processor is served with; none, where it is known not to be."""
    try:
        profiles = fresh(family).processor.info.profile.modalities
    except ValueError:
        assert family in NOT_YET, f"{family}: isn't served, and nothing says why"
        return ()
    names = tuple(name for name in profiles if name in spec(family).placeholders)
    if family in NOT_YET:
        try:
            for name in names:
                fresh(family)(spec(family).placeholders[name], {name: [ITEMS[name][0]]})
        except RequestError:
            return ()
    return names


def fields(output: Mapping[str, Any], modality: str) -> list[dict[str, Any]]:
    return [{name: elem.data for name, elem in item.items()} for item in output["mm_kwargs"][modality]]


@functools.cache
def alone(family: str, modality: str, index: int) -> dict[str, Any]:
    output = fresh(family)(spec(family).placeholders[modality], {modality: [ITEMS[modality][index]]})
    return fields(output, modality)[0]


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return one.dtype == other.dtype and torch.equal(one, other)


def same_fields(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("family", families())
@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(case=requests)
def test_c1_c2_c4_any_mix_at_any_hit_rate(family: str, case: Any) -> None:
    parts, tail, hit_rate, seed = case
    modalities = served(family)
    if not modalities:
        pytest.skip(NOT_YET[family])
    asked = [
        (text, modality, index % len(ITEMS[modality]))
        for text, wanted, index in parts
        for modality in [wanted if wanted in modalities else modalities[index % len(modalities)]]
    ]
    if spec(family).headed:
        asked, tail = asked[:1], tail or "."
    prompt = "".join(text + spec(family).placeholders[modality] for text, modality, _ in asked) + tail
    indices = {modality: [index for _, name, index in asked if name == modality] for modality in modalities}
    items = {modality: [ITEMS[modality][index] for index in found] for modality, found in indices.items() if found}

    cached = processor_of(family, cached=True)
    distinct = sorted({(modality, index) for _, modality, index in asked})
    warm = random.Random(seed).sample(distinct, round(hit_rate * len(distinct)))
    for modality, index in warm:
        cached(spec(family).placeholders[modality], {modality: [ITEMS[modality][index]]})

    before = calls.count()
    kept = cached(prompt, items)
    assert calls.count() - before <= len(distinct) - len(warm)
    expected = fresh(family)(prompt, items)
    assert kept["prompt_token_ids"] == expected["prompt_token_ids"]
    assert kept["mm_placeholders"] == expected["mm_placeholders"]
    for modality in items:
        places = kept["mm_placeholders"][modality]
        found = zip(indices[modality], fields(kept, modality), fields(expected, modality), places, strict=True)
        for index, one, other, place in found:
            assert same_fields(one, alone(family, modality, index)), "C1"
            assert same_fields(one, other), "C2"
            assert place.get_num_embeds() == int(one[f"{modality}.num_embeds"]) > 0, "C4"
    before = calls.count()
    assert cached(prompt, items)["prompt_token_ids"] == expected["prompt_token_ids"]
    assert calls.count() == before, "every item was in the cache"
    modality = next(iter(items))
    placeholder = fresh(family).processor.info.modality_profile(modality).placeholder
    with pytest.raises(RequestError, match=f"{modality} placeholder"):
        cached(prompt + (spec(family).placeholders[modality] or placeholder), items)
    assert calls.count() == before, "a refused request calls nothing"


@pytest.mark.parametrize("family", families())
def test_c5_legacy_and_offsets_agree(family: str) -> None:
    """R10: which processors report offsets hangs on the release; both ways give the same ids and fields."""
    compared = 0
    tokenizer: Any = fresh(family).processor.info.get_tokenizer() if served(family) else None
    for modality in served(family):
        by_profile = fresh(family).processor.info.alone(modality)
        if by_profile.strategy.name != "offsets":
            continue
        if fresh(family).processor.info.modality_profile(modality).splicing.edit is not None:
            continue  # PaliGemma: searched for, an expansion has what the processor writes behind the last item, too
        by_legacy = dataclasses.replace(by_profile, strategy=STRATEGIES["legacy"])
        for item in ITEMS[modality][1:4]:
            one, other = by_profile(item, {}), by_legacy(item, {})
            # What the processor says it replaced may be less than the text that was asked with (HunYuan-VL refuses it bare).
            before, _, after = other.placeholder.partition(one.placeholder)
            around = [tokenizer.encode(text, add_special_tokens=False) for text in (before, after)]
            assert (*around[0], *one.expansion.ids, *around[1]) == other.expansion.ids, modality
            outside = [(False,) * len(ids) for ids in around]
            assert (*outside[0], *one.expansion.is_embed, *outside[1]) == other.expansion.is_embed, modality
            assert same_fields(one.fields, other.fields), modality
            compared += 1
    if not compared:
        if family in NOT_YET:
            pytest.skip(NOT_YET[family])
        profiles = fresh(family).processor.info.profile.modalities.values()
        assert all(profile.strategy == "legacy" or profile.splicing.edit is not None for profile in profiles), family
        pytest.skip("its processor reports no offsets, or edits the prompt")
