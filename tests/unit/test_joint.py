"""Several items of one call are told apart only where that is certain, and are then what they are alone (C1)."""

import numpy as np
import pytest
import torch
from PIL import Image

from hf_backend.probe.joint import joint_split, split_fields
from hf_backend.processing.new_items import is_same
from hf_backend.records import Expansion, FieldLayout, Item, Joining, JointSplit

pytestmark = pytest.mark.processing

ROWS = FieldLayout(Joining.CONCATENATED, 0, exact=True)


def item(num_embeds: int, **fields: torch.Tensor) -> Item:
    return Item("<image>", Expansion((9,) * num_embeds, (True,) * num_embeds), fields)


def test_rows_counted_by_a_grid() -> None:
    """Qwen2-VL: `pixel_values` has as many rows as `image_grid_thw` says."""
    grids = [torch.tensor([[1, 2, 4]]), torch.tensor([[1, 4, 6]])]
    one, other = (
        item(n, grid=grid, pixels=torch.randn(int(grid.prod()), 5)) for n, grid in zip((2, 6), grids, strict=True)
    )
    layouts = {"grid": ROWS, "pixels": ROWS}
    split = joint_split(one, other, layouts)
    assert split == JointSplit({"grid": None, "pixels": "grid"}, num_embeds=None)
    fields = {
        name: torch.cat([torch.as_tensor(one.fields[name]), torch.as_tensor(other.fields[name])]) for name in layouts
    }
    parts = split_fields(fields, split, layouts, 2)
    assert parts is not None
    for part, alone in zip(parts, (one, other), strict=True):
        assert all(torch.equal(part[name], torch.as_tensor(alone.fields[name])) for name in layouts)
    assert split_fields({**fields, "pixels": fields["pixels"][:-1]}, split, layouts, 2) is None
    assert split_fields(fields, split, layouts, 3) is None


def test_one_row_each_and_one_number_of_embeddings() -> None:
    """LLaVA: pictures of one size. LLaVA-NeXT has one row a picture too, but pads tiles: its embeddings differ in number."""
    same = [item(4, pixels=torch.randn(1, 3, 8, 8)) for _ in range(2)]
    assert joint_split(*same, {"pixels": ROWS}) == JointSplit({"pixels": None}, num_embeds=4)
    other = item(7, pixels=torch.randn(1, 3, 8, 8))
    assert joint_split(same[0], other, {"pixels": ROWS}) is None
    tiled = item(4, pixels=torch.randn(1, 1, 3, 8, 8))
    assert joint_split(tiled, tiled, {"pixels": ROWS}) is None, "Perception LM: another picture may have more tiles"


@pytest.mark.parametrize(
    "layout",
    [FieldLayout(Joining.CONSTANT), FieldLayout(Joining.CONCATENATED, 0, exact=False)],
    ids=["constant", "padded"],
)
def test_what_is_not_certain_is_not_split(layout: FieldLayout) -> None:
    one = item(4, pixels=torch.zeros(1, 3, 8, 8))
    assert joint_split(one, one, {"pixels": layout}) is None


def test_tiles_are_not_split() -> None:
    """InternVL: how many tiles a picture has is only known once it was processed."""
    one, other = item(4, pixels=torch.zeros(1, 3, 8, 8)), item(12, pixels=torch.zeros(3, 3, 8, 8))
    assert joint_split(one, other, {"pixels": ROWS}) is None


def test_items_that_are_there_twice() -> None:
    black, white = Image.new("RGB", (4, 4)), Image.new("RGB", (4, 4), (255, 255, 255))
    assert is_same(black, black.copy())
    assert not is_same(black, white)
    assert not is_same(Image.new("L", (4, 4)), black)
    palette = Image.new("P", (4, 4))
    other = palette.copy()
    other.putpalette([255, 0, 0] * 256)
    assert not is_same(palette, other), "the same indices of other colours"
    video = np.zeros((2, 4, 4, 3), np.uint8)
    assert is_same((video, {"fps": 2.0}), (video.copy(), {"fps": 2.0}))
    assert not is_same((video, {"fps": 2.0}), (video, {"fps": 1.0}))
    assert not is_same(video, video[:1])
    assert not is_same(object(), object())
