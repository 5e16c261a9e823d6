"""Buckets, joining and the exact split: order in is order out (C8), whatever shares a call."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_backend.encoding.buckets import bucket, join
from hf_backend.encoding.encode import encode
from hf_backend.encoding.items import EncoderItem, take_apart
from hf_backend.encoding.ragged import lengths, padded_dims, sides
from hf_backend.errors import EncoderOutputError
from hf_backend.probe.samples import clips_of_many_lengths
from hf_backend.records import EXPANSION, NUM_EMBEDS, FieldLayout, Joining, wire_name

IDS = torch.tensor([7])
PACKED = {"rows": FieldLayout(Joining.CONCATENATED, 0), "grid": FieldLayout(Joining.CONCATENATED, 0)}
STACKED = {"pixels": FieldLayout(Joining.CONCATENATED, 0)}
SIDES = {"pixels": frozenset({2, 3})}
TILED = {"pixels": FieldLayout(Joining.CONCATENATED, 1)}


def packed_item(number: int, rows: int) -> EncoderItem:
    """Qwen2-VL's form: [rows, width] and one grid row; every row says whose it is."""
    return EncoderItem({"rows": torch.full((rows, 2), float(number)), "grid": torch.tensor([[1, 1, rows]])}, rows, IDS)


def stacked_item(number: int, height: int, width: int) -> EncoderItem:
    """Pixtral's form: [1, 3, height, width]; an embedding for each pixel."""
    return EncoderItem({"pixels": torch.full((1, 3, height, width), float(number))}, height * width, IDS)


class Encoder:
    """An encoder whose embeddings are its pixels, and which notes its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def packed(self, items: Sequence[EncoderItem]) -> torch.Tensor:
        self.calls += 1
        fields = join([item.fields for item in items], PACKED)
        assert fields["grid"].prod(-1).sum() == len(fields["rows"])
        return fields["rows"]

    def stacked(self, items: Sequence[EncoderItem]) -> torch.Tensor:
        self.calls += 1
        fields = join([item.fields for item in items], STACKED)
        return fields["pixels"].permute(0, 2, 3, 1).reshape(-1, 3)


@given(st.lists(st.integers(1, 9), max_size=12))
def test_c8_packed_items_of_any_size_share_one_call(sizes: list[int]) -> None:
    encoder = Encoder()
    items = [packed_item(number, rows) for number, rows in enumerate(sizes)]
    embeddings = encode(items, PACKED, True, encoder.packed, "test")
    assert encoder.calls == (1 if items else 0)
    assert [len(each) for each in embeddings] == sizes
    assert all((each == number).all() for number, each in enumerate(embeddings))


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=12))
def test_c8_stacked_items_share_a_call_with_their_size(sizes: list[tuple[int, int]]) -> None:
    encoder = Encoder()
    items = [stacked_item(number, *size) for number, size in enumerate(sizes)]
    embeddings = encode(items, STACKED, True, encoder.stacked, "test")
    assert encoder.calls == len(set(sizes))
    assert [len(each) for each in embeddings] == [height * width for height, width in sizes]
    assert all((each == number).all() for number, each in enumerate(embeddings))


def test_a_single_embedding_is_never_alone_in_a_call() -> None:
    """Mistral3 squeezes a batch of one row into none and raises, in the engine's step."""

    def run(items: Sequence[EncoderItem]) -> torch.Tensor:
        assert len(items) > 1
        return join([item.fields for item in items], PACKED)["rows"]

    (embeddings,) = encode([packed_item(5, 1)], PACKED, True, run, "test")
    assert embeddings.tolist() == [[5.0, 5.0]]


def test_items_that_do_not_join_are_encoded_one_by_one() -> None:
    encoder = Encoder()
    encode([packed_item(0, 2), packed_item(1, 2)], PACKED, False, encoder.packed, "test")
    assert encoder.calls == 2


def test_tiles_join_in_their_own_dimension() -> None:
    """Idefics3: [1, tiles, …] an item, [1, all tiles, …] a call."""
    items = [{"pixels": torch.full((1, tiles, 3, 2, 2), float(tiles))} for tiles in (1, 4)]
    assert bucket(items, TILED, True) == [[0, 1]]
    assert join(items, TILED)["pixels"].shape == (1, 5, 3, 2, 2)


def test_constant_fields_part_buckets_by_value() -> None:
    layouts = {**STACKED, "mode": FieldLayout(Joining.CONSTANT)}
    items = [{"pixels": torch.zeros(1, 3, 2, 2), "mode": torch.tensor(mode)} for mode in (1, 2, 1)]
    assert bucket(items, layouts, True) == [[0, 2], [1]]
    assert join([items[0], items[2]], layouts)["mode"] == 1


@pytest.mark.parametrize("found", [4, 6])
def test_a_count_that_does_not_fit_is_an_error_that_says_so(found: int) -> None:
    """Never padded or cut: embeddings would be taken for another item's."""
    with pytest.raises(EncoderOutputError, match=rf"TinyModel: found {found} embeddings .* expected 5"):
        encode([packed_item(0, 2), packed_item(1, 3)], PACKED, True, lambda items: torch.zeros(found, 2), "TinyModel")


@pytest.mark.parametrize("sizes", [[3], [3, 3], [3, 5]], ids=["one", "equal sizes", "unequal sizes"])
def test_items_come_apart_as_they_were_batched(sizes: list[int]) -> None:
    """vLLM stacks items that agree in shape and hands on a list of those that don't."""
    rows = [torch.randn(size, 2) for size in sizes]
    batched = torch.stack(rows) if len(set(sizes)) == 1 else rows
    kwargs = {
        wire_name("image", "rows"): batched,
        wire_name("image", NUM_EMBEDS): torch.tensor(sizes),
        wire_name("image", EXPANSION): [IDS] * len(sizes),
    }
    (items,) = take_apart(kwargs, ["image", "audio"]).values()
    assert [item.num_embeds for item in items] == sizes
    assert all(torch.equal(item.fields["rows"], each) for item, each in zip(items, rows, strict=True))


def test_fields_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="`rows` has 1 entries for 2 image items"):
        take_apart(
            {"image.rows": [torch.zeros(1)], "image.num_embeds": torch.tensor([1, 1]), "image.expansion": [IDS, IDS]},
            ["image"],
        )


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=12), st.sampled_from([1.0, 7.0]))
def test_c8_ragged_items_share_a_call_where_padding_is_cut_off(sizes: list[tuple[int, int]], fill: float) -> None:
    """Pixtral's form with its sizes beside it: the tower cuts off what was padded, whatever is there."""
    layouts = {"pixels": FieldLayout(Joining.CONCATENATED, 0), "sizes": FieldLayout(Joining.CONCATENATED, 0)}
    items = [
        EncoderItem({**stacked_item(number, *size).fields, "sizes": torch.tensor([size])}, size[0] * size[1], IDS)
        for number, size in enumerate(sizes)
    ]
    calls = 0

    def run(some: Sequence[EncoderItem]) -> torch.Tensor:
        nonlocal calls
        calls += 1
        fields = join([item.fields for item in some], layouts, fill)
        pictures = zip(fields["pixels"], fields["sizes"], strict=True)
        return torch.cat([one[:, :height, :width].flatten(1).T for one, (height, width) in pictures])

    found = encode(items, layouts, True, run, "test", padded=SIDES)
    assert calls == (1 if items else 0), "small enough"
    for number, (item, rows) in enumerate(zip(items, found, strict=True)):
        assert torch.equal(rows, torch.full((item.num_embeds, 3), float(number)))


def test_ragged_items_are_not_padded_to_waste() -> None:
    """A large picture beside many small ones: they keep calls of their own."""
    items = [
        stacked_item(0, 2048, 2048).fields,
        *[stacked_item(1, 64, 64).fields] * 40,
        stacked_item(2, 2048, 1900).fields,
    ]
    found = bucket(items, STACKED, True, padded=SIDES)
    assert sorted(map(sorted, found)) == [[0, 41], list(range(1, 41))]


def test_ragged_keeps_apart_what_differs_in_more_than_size() -> None:
    one = stacked_item(0, 2, 2).fields
    other = {"pixels": torch.zeros(1, 3, 3, 3, dtype=torch.float64)}
    listed = {"pixels": [torch.zeros(3, 2, 2)]}
    assert len(bucket([one, other, listed], STACKED, True, padded=SIDES)) == 3
    tiled = [{"pixels": torch.zeros(1, tiles, 3, 2, 2)} for tiles in (1, 2)]
    assert len(bucket(tiled, STACKED, True, padded=sides(tiled, STACKED))) == 2, "Phi-4-multimodal"


@pytest.mark.parametrize(
    ("cut", "leak", "ignored"), [(True, 0.0, True), (False, 0.0, False), (True, 1e-6, False)], ids=str
)
def test_padding_is_ignored_or_not(cut: bool, leak: float, ignored: bool) -> None:
    """Embeddings that are equal but for rounding don't do: what the padding holds must not reach them at all."""
    items = [stacked_item(1, 2, 2).fields, stacked_item(2, 3, 3).fields]

    def run(fields: Any) -> torch.Tensor:
        pixels = fields["pixels"]
        rows = [pixels[0, :, :2, :2], pixels[1]] if cut else list(pixels)
        return torch.cat([row.flatten(1).T for row in rows]) + leak * pixels.sum()

    alone = [item["pixels"].flatten(2)[0].T for item in items]
    assert padded_dims(run, items, alone, STACKED, SIDES) == (SIDES if ignored else None)


def test_clips_may_be_padded_where_they_were_seen_to_differ() -> None:
    """In length; not in the dimension that joins them, nor in the number of mel bins."""
    layouts = {"features": FieldLayout(Joining.CONCATENATED, 0), "rate": FieldLayout(Joining.CONSTANT)}
    clips = [
        {"features": torch.zeros(windows, 16, frames), "rate": torch.tensor(1)}
        for windows, frames in ((1, 30), (1, 43), (2, 56))
    ]
    assert lengths(clips, layouts) == {"features": frozenset({2})}
    assert len(bucket(clips, layouts, True)) == 3
    assert len(bucket(clips, layouts, True, padded=lengths(clips, layouts))) == 1


def test_a_tower_that_halves_lengths_needs_more_than_two_clips() -> None:
    """Gemma 3n's form: pairs of frames are added up, and the last of an odd number meets the padding. Even lengths pass."""
    layouts = {"features": FieldLayout(Joining.CONCATENATED, 0), "mask": FieldLayout(Joining.CONCATENATED, 0)}

    def clip(frames: int) -> dict[str, torch.Tensor]:
        return {"features": torch.rand(1, frames, 3) + 1, "mask": torch.ones(1, frames, dtype=torch.bool)}

    def run(fields: Any) -> torch.Tensor:
        features, mask = fields["features"], fields["mask"]
        odd = torch.nn.functional.pad(features, (0, 0, 0, features.shape[1] % 2))
        pairs = odd[:, ::2] + odd[:, 1::2]
        return pairs[mask[:, ::2]]

    def ignored(*frames: int) -> bool:
        clips = [clip(each) for each in frames]
        dims = lengths(clips, layouts)
        return padded_dims(run, clips, [run(each) for each in clips], layouts, dims) is not None

    assert ignored(60, 170)
    assert not ignored(60, 170, 43)
    hop = 160
    frames = [len(samples) // hop for samples in clips_of_many_lengths(16_000)]
    assert {each % 16 for each in frames} == set(range(16))
    assert not ignored(60, 170, *frames)
