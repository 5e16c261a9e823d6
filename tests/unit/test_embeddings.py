"""Embeddings that a request brings along become items of as many places as they have rows."""

import pytest
import torch

from hf_backend.errors import RequestError
from hf_backend.processing.embeddings import EmbeddingsRule, item_of_embeddings, split_fields
from hf_backend.records import EMBEDS, Expansion, Item, ModalityProfile, Splicing

pytestmark = pytest.mark.processing

PROFILE = ModalityProfile(
    modality="image",
    placeholder="<image>",
    headed=False,
    target_ids=(7,),
    strategy="offsets",
    embed_ids=frozenset({9}),
    layouts={},
    text_fields=frozenset(),
    joinable=True,
    several=True,
    splicing=Splicing(),
    frame=((1, 2), (3,)),
    nested=False,
    joint=None,
    wraps=None,
    probe_calls=5,
    probe_seconds=0.0,
)


@pytest.mark.parametrize("count", [1, 4])
def test_as_many_places_as_rows_within_the_frame(count: int) -> None:
    embeddings = torch.randn(count, 8)
    item = item_of_embeddings(embeddings, PROFILE, "TinyProcessor", hidden_size=8, rule=EmbeddingsRule())
    assert item.expansion.ids == (1, 2, *[9] * count, 3)
    assert item.expansion.is_embed == (False, False, *[True] * count, False)
    assert item.fields.keys() == {EMBEDS}
    assert torch.equal(torch.as_tensor(item.fields[EMBEDS]), embeddings)


@pytest.mark.parametrize("shape", [(8,), (1, 2, 8), (0, 8), (2, 7)])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        RequestError, match=r"TinyProcessor: found image embeddings of shape .* expected \[count, hidden"
    ):
        item_of_embeddings(torch.zeros(shape), PROFILE, "TinyProcessor", hidden_size=8, rule=EmbeddingsRule())


def item(count: int, grid: tuple[int, int, int], gap: bool = False) -> Item:
    is_embed = (False, *[True] * count, False, *[True] * gap)
    fields = {"pixel_values": torch.zeros(4 * count, 5), "image_grid_thw": torch.tensor([grid])}
    return Item("<image>", Expansion((1,) * len(is_embed), is_embed), fields)


SIZED = EmbeddingsRule.of([item(4, (1, 4, 4)), item(6, (1, 4, 6))], positions_need_fields=True)


def test_models_whose_positions_follow_an_items_size_need_its_grid() -> None:
    """Qwen2-VL's positions are made of a picture's grid; without it the engine would fail, not the request."""
    assert EmbeddingsRule(True, frozenset({"image_grid_thw"}), {"image_grid_thw": 4.0}) == SIZED
    with pytest.raises(RequestError, match="with nothing; expected image_grid_thw beside them"):
        item_of_embeddings(torch.zeros(2, 8), PROFILE, "TinyProcessor", hidden_size=8, rule=SIZED)
    given = {EMBEDS: torch.zeros(2, 8), "image_grid_thw": torch.tensor([[1, 2, 4]])}
    made = item_of_embeddings(given, PROFILE, "TinyProcessor", hidden_size=8, rule=SIZED)
    assert made.expansion.num_embeds == 2
    assert made.fields.keys() == {EMBEDS, "image_grid_thw"}
    with pytest.raises(RequestError, match="expected 4 rows"):
        item_of_embeddings(
            given | {"image_grid_thw": torch.tensor([[1, 4, 4]])}, PROFILE, "TinyProcessor", hidden_size=8, rule=SIZED
        )


def test_tokens_between_embeddings_need_the_item() -> None:
    """Pixtral ends each line of a picture by a token; which prompt rows alone would stand for, nobody can say."""
    rule = EmbeddingsRule.of([item(4, (1, 4, 4), gap=True), item(6, (1, 4, 6))], positions_need_fields=False)
    with pytest.raises(RequestError, match="tokens of its own between"):
        item_of_embeddings(torch.zeros(2, 8), PROFILE, "TinyProcessor", hidden_size=8, rule=rule)


def test_a_dictionary_is_split_by_the_grids() -> None:
    rows = torch.arange(6.0)[:, None].expand(6, 8)
    grids = torch.tensor([[1, 2, 4], [1, 4, 4]])
    for embeddings in (rows, [rows[:2], rows[2:]]):
        first, second = split_fields({"image_embeds": embeddings, "image_grid_thw": grids}, "image")
        assert torch.equal(torch.as_tensor(first[EMBEDS]), rows[:2])
        assert torch.equal(torch.as_tensor(second[EMBEDS]), rows[2:])
        assert torch.equal(torch.as_tensor(second["image_grid_thw"]), grids[1:])
    with pytest.raises(ValueError, match="expected a list of one tensor an item"):
        split_fields({"image_embeds": rows[:5], "image_grid_thw": grids}, "image")
    with pytest.raises(ValueError, match="expected image_embeds"):
        split_fields({"embeds": rows}, "image")
