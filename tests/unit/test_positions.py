"""M-RoPE positions by HF's own rule, items apart also where they touch (C6)."""

from types import SimpleNamespace

import pytest
import torch

from compat.zoo.registry import spec
from compat.zoo.store import checkpoint
from hf_backend.language.positions import rope_positions, token_types
from hf_backend.probe.samples import picture
from hf_backend.records import FieldLayout, Joining

pytestmark = pytest.mark.language

LAYOUTS = {"image": {"image_grid_thw": FieldLayout(Joining.CONCATENATED, 0)}}
FAMILIES = ["qwen2_vl", "qwen2_5_vl", "glm4v"]


def feature(offset: int, length: int, grid: list[int]) -> SimpleNamespace:
    """The part of vLLM's `MultiModalFeatureSpec` that positions are made from."""
    return SimpleNamespace(
        modality="image",
        data={"image.image_grid_thw": SimpleNamespace(data=torch.tensor([grid]))},
        mm_position=SimpleNamespace(offset=offset, length=length, is_embed=None),
    )


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def loaded(family: str):  # type: ignore[no-untyped-def]
    from transformers import AutoModelForImageTextToText, AutoProcessor

    folder = checkpoint(family)
    return AutoProcessor.from_pretrained(folder), AutoModelForImageTextToText.from_pretrained(folder).model


@pytest.mark.parametrize("pictures", [0, 1, 3])
def test_positions_equal_transformers(family: str, pictures: int) -> None:
    processor, model = loaded(family)
    images = [picture(64 + 60 * number, 112) for number in range(pictures)]
    text = "so " + "".join(f"{spec(family).placeholders['image']} and " for _ in images)
    inputs = processor(text=text, images=images or None, return_tensors="pt")
    ids = inputs["input_ids"][0].tolist()
    embeds = torch.tensor(ids) == processor.image_token_id
    starts = [index for index in range(len(ids)) if embeds[index] and not embeds[index - 1]]
    features = []
    for start, grid in zip(starts, inputs.get("image_grid_thw", []), strict=True):
        length = int(grid.prod()) // 4
        assert embeds[start : start + length].all()
        features.append(feature(start, length, grid.tolist()))

    positions, delta = rope_positions(model.get_rope_index, ids, features, LAYOUTS)

    types = embeds.int()[None]
    expected, deltas = model.get_rope_index(
        input_ids=torch.tensor([ids]), image_grid_thw=inputs.get("image_grid_thw"), mm_token_type_ids=types
    )
    assert torch.equal(positions, expected[:, 0])
    assert delta == int(deltas.flatten()[0])


def test_c6_touching_items_have_positions_of_their_own(family: str) -> None:
    """transformers itself takes two touching pictures for one and fails; the rule is the one it applies to each: an item
    starts one after the largest position before it."""
    _, model = loaded(family)
    grids = [[1, 4, 6], [1, 8, 4], [1, 2, 2]]
    features, offset = [], 2
    for grid in grids:
        length = grid[1] * grid[2] // 4
        features.append(feature(offset, length, grid))
        offset += length
    ids = [5] * (offset + 3)

    positions, delta = rope_positions(model.get_rope_index, ids, features, LAYOUTS)

    expected, start = [torch.arange(2).expand(3, 2)], 2
    for _, height, width in grids:
        rows, columns = torch.meshgrid(torch.arange(height // 2), torch.arange(width // 2), indexing="ij")
        item = torch.stack([torch.zeros_like(rows), rows, columns]).flatten(1) + start
        expected.append(item)
        start = int(item.max()) + 1
    expected.append(torch.arange(start, start + 3).expand(3, 3))
    assert torch.equal(positions, torch.cat(expected, dim=1))
    assert delta == start + 3 - len(ids)


def test_token_types_mark_embeddings_only() -> None:
    """Structure tokens inside an expansion (row separators, start and end) are text."""
    one = feature(1, 4, [1, 2, 2])
    one.mm_position.is_embed = torch.tensor([False, True, True, False])
    types, owners = token_types(6, [one])
    assert types.tolist() == [0, 0, 1, 1, 0, 0]
    assert owners.tolist() == [0, 0, 1, 1, 0, 0]
