"""Over every tiny processor: items depend on nothing but themselves, and the prompt is what transformers makes of it.

Random mixes, orders, sizes, repeats and cache states. Everything is compared bit for bit.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compat.expected import RIGHT
from compat.processors import FamilyProcessor, processor_of
from compat.zoo.registry import spec
from hf_backend.errors import RequestError
from hf_backend.probe import calls
from hf_backend.probe.samples import picture

pytestmark = pytest.mark.processing

SIZES = [(64, 64), (112, 84), (50, 90), (224, 392), (300, 40), (33, 33)]
PICTURES = [picture(*size, seed=number) for number, size in enumerate(SIZES)]
TEXTS = ["", " ", "\n", "look at ", ", then\n\n", "<b>"]

requests = st.tuples(
    st.lists(st.tuples(st.sampled_from(TEXTS), st.integers(0, len(PICTURES) - 1)), min_size=1, max_size=4),
    st.sampled_from(["", " what is it?", "\n"]),
)
few = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))

plain: dict[str, FamilyProcessor] = {}
warm: dict[str, FamilyProcessor] = {}
"""One cache per family for the whole run: its hit rate grows from 0 to 1 over the generated requests."""


@pytest.fixture(params=RIGHT["image"])
def family(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name not in plain:
        plain[name], warm[name] = processor_of(name, cached=False), processor_of(name, cached=True)
    return name


def build(family: str, parts: Sequence[tuple[str, int]], tail: str) -> tuple[str, list[object]]:
    placeholder = spec(family).placeholders["image"]
    if spec(family).headed:
        # Of an empty text the tokenizer makes a mark, of which nothing is left beside an item.
        return "".join(text for text, _ in parts) + (tail or "."), [PICTURES[parts[0][1]]]
    return "".join(text + placeholder for text, _ in parts) + tail, [PICTURES[index] for _, index in parts]


def fields(output: dict[str, Any]) -> list[dict[str, torch.Tensor]]:
    return [{name: elem.data for name, elem in item.items()} for item in output["mm_kwargs"]["image"]]


def assert_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one["prompt_token_ids"] == other["prompt_token_ids"]
    assert one["mm_placeholders"] == other["mm_placeholders"]
    for item, same in zip(fields(one), fields(other), strict=True):
        assert item.keys() == same.keys()
        assert all(torch.equal(item[name], same[name]) for name in item)


@few
@given(case=requests)
def test_c1_items_are_what_they_are_alone(family: str, case: Any) -> None:
    prompt, pictures = build(family, *case)
    together = fields(plain[family](prompt, {"image": pictures}))
    for item, one in zip(together, pictures, strict=True):
        (alone,) = fields(plain[family](spec(family).placeholders["image"], {"image": [one]}))
        assert item.keys() == alone.keys()
        assert all(torch.equal(item[name], alone[name]) for name in item)


@few
@given(case=requests)
def test_c2_cached_and_uncached_are_equal(family: str, case: Any) -> None:
    prompt, pictures = build(family, *case)
    fresh = plain[family](prompt, {"image": pictures})
    assert_equal(warm[family](prompt, {"image": pictures}), fresh)
    before = calls.count()
    assert_equal(warm[family](prompt, {"image": pictures}), fresh)
    assert calls.count() == before, "every item was in the cache"


@few
@given(case=requests)
def test_c3_text_and_token_ids_are_one_request(family: str, case: Any) -> None:
    prompt, pictures = build(family, *case)
    ids = plain[family].processor.info.get_tokenizer().encode(prompt)
    assert_equal(plain[family](ids, {"image": pictures}), plain[family](prompt, {"image": pictures}))


@few
@given(case=requests)
def test_c4_c6_the_prompt_is_what_transformers_makes_of_it(family: str, case: Any) -> None:
    """Ids equal HF's own expansion of the whole request, items apart even where they touch, and every item has as many
    places as it says it has embeddings."""
    prompt, pictures = build(family, *case)
    output = plain[family](prompt, {"image": pictures})
    hf_processor = plain[family].processor.info.get_hf_processor()
    expected = hf_processor(text=prompt, images=pictures, return_tensors="pt")["input_ids"][0].tolist()
    assert output["prompt_token_ids"] == expected
    ranges = output["mm_placeholders"]["image"]
    assert len(ranges) == len(pictures)
    assert all(one.offset + one.length <= two.offset for one, two in itertools.pairwise(ranges))
    for place, item in zip(ranges, fields(output), strict=True):
        assert place.get_num_embeds() == int(item["image.num_embeds"]) > 0


@few
@given(case=requests, extra=st.sampled_from([-1, 1]))
def test_c7_c11_a_refused_request_leaves_everything_as_it_was(family: str, case: Any, extra: int) -> None:
    """One placeholder too many (a literal one) or too few: refused before any HF call, and the next request is right."""
    prompt, pictures = build(family, *case)
    placeholder = spec(family).placeholders["image"]
    wrong = prompt + placeholder if extra > 0 else prompt.replace(placeholder, "", 1)
    if spec(family).headed:
        extra, wrong = 1, prompt + plain[family].processor.info.modality_profile("image").placeholder
    fresh = plain[family](prompt, {"image": pictures})
    before = calls.count()
    with pytest.raises(RequestError, match=f"found {len(pictures) + extra} image placeholder"):
        warm[family](wrong, {"image": pictures})
    assert calls.count() == before
    assert_equal(warm[family](prompt, {"image": pictures}), fresh)


def test_calls_n_new_items_take_at_most_n_calls(family: str) -> None:
    """One where the split into items is certain, else one each; an item that is there twice is processed once (R70)."""
    processor = processor_of(family, cached=True)
    if spec(family).headed:
        with pytest.raises(Exception, match="At most 1 image"):  # vLLM's own; its class hangs on the release
            processor("two", {"image": PICTURES[:2]})
        return
    joint = processor.processor.info.profile.modalities["image"].joint
    prompt, pictures = build(family, [("", 0), ("", 1), ("", 2)], "")
    before = calls.count()
    processor(prompt, {"image": pictures})
    new = calls.count() - before
    assert new == (3 if joint is None else 1)
    processor(prompt, {"image": pictures[::-1]})
    assert calls.count() - before == new
    processor(prompt, {"image": [PICTURES[3], PICTURES[3].copy(), PICTURES[0]]})
    assert calls.count() - before == new + 1


def test_profiling_uses_the_largest_measured_item(family: str) -> None:
    """Every picture the tests use has at most as many embeddings as the profile says one can have."""
    info = plain[family].processor.info
    most = info.get_mm_max_tokens_per_item(2048, {"image": 1})["image"]
    for one in PICTURES:
        (item,) = fields(plain[family](spec(family).placeholders["image"], {"image": [one]}))
        assert int(item["image.num_embeds"]) <= most
    dummy = info.largest_item("image", 2048)
    assert dummy.num_embeds == most
    assert max(dummy.size) <= 4096
    profile = info.profile.modalities["image"]
    assert profile.probe_calls <= (10 if profile.splicing.touching is None else 12), (
        "up to four more where text merges, the prompt is edited, or tokens stand around embeddings; three where what touches an"
        " expansion is joined"
    )
