"""What a forward hands over is told apart; tables with exceptions, and levels in their places."""

from types import SimpleNamespace

import pytest
import torch

from hf_backend.encoding.capture import Captured
from hf_backend.encoding.extras import classify
from hf_backend.errors import UnsupportedModelError
from hf_backend.language.levels import Levels, level_places
from hf_backend.language.lookup import Table

IS_EMBED = torch.tensor([False, True, True, False])
EMBEDDINGS = torch.arange(12.0).reshape(4, 3)
LEVEL = torch.arange(6.0).reshape(2, 3) + 1


def test_levels_masks_and_per_token_inputs_are_told_apart() -> None:
    extras = {
        "deepstack": [LEVEL, LEVEL * 2],
        "mask": IS_EMBED[None, :, None],
        "per_layer": torch.zeros(1, 4, 2, 5),
    }
    found = classify(Captured(EMBEDDINGS, extras), IS_EMBED, "Model")
    assert found.levels == (("deepstack", 0), ("deepstack", 1))
    assert found.per_token == ("per_layer",)
    rows = found.rows(Captured(EMBEDDINGS, extras), IS_EMBED)
    assert torch.equal(rows, torch.cat([EMBEDDINGS[IS_EMBED], LEVEL, LEVEL * 2], -1))


@pytest.mark.parametrize("value", [torch.zeros(7), ~IS_EMBED[None], True, torch.zeros(1, 4)])
def test_what_fits_no_kind_is_refused_by_name(value: object) -> None:
    with pytest.raises(UnsupportedModelError, match=r"given odd\.3"):
        classify(Captured(EMBEDDINGS, {"odd": {3: value}}), IS_EMBED, "Model")


def test_a_table_keeps_its_exceptions() -> None:
    weights = torch.arange(10.0).reshape(5, 2)
    table = Table(lambda ids: weights[ids])
    table.add(torch.tensor([1, 6]), weights[[4, 4]], 7)
    assert table.rows is not None
    assert len(table.rows) == 1
    assert torch.equal(table(torch.tensor([0, 1, 6, 3])), weights[[0, 4, 4, 3]])
    table.add_nothing(torch.tensor([5]), 7)
    assert torch.equal(table(torch.tensor([5, 6, 2])), torch.stack([torch.zeros(2), weights[4], weights[2]]))


class Text(torch.nn.Module):
    """A text model that adds its levels by a mask, before layers of a dictionary, as Granite 4 Vision does."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(num_hidden_layers=3)
        self.embed = torch.nn.Embedding(4, 3)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(3))

    def get_input_embeddings(self) -> torch.nn.Embedding:
        return self.embed

    def forward(self, inputs_embeds, levels=None, scale=1.0, **_):  # type: ignore[no-untyped-def]
        hidden = inputs_embeds
        for index, layer in enumerate(self.layers):
            if levels and index in levels:
                hidden = hidden.clone()
                hidden[:, IS_EMBED] += levels[index] * scale
            hidden = layer(hidden)
        return hidden


@torch.inference_mode()
def test_levels_are_added_where_the_model_adds_them_and_nothing_stays() -> None:
    model = Text()
    levels = {2: LEVEL, 0: LEVEL * 3}
    paths = [("levels", 2), ("levels", 0)]
    places = level_places(model, {"levels": levels}, paths, IS_EMBED, 3)
    assert places == (2, 0)
    text = torch.randn(1, 4, 3)
    expected, without = model(text, levels), model(text)
    buffers = Levels(model, places, 8, 3)
    buffers.write(torch.cat([LEVEL, LEVEL * 3], -1), IS_EMBED)
    assert torch.equal(model(text), expected)
    # A decode step of one token, then a longer one: nothing of the picture is left in either.
    buffers.write(None, None)
    assert torch.equal(model(text), without)


@torch.inference_mode()
def test_levels_that_are_changed_before_they_are_added_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="something else than a level added before layer 1"):
        level_places(Text(), {"levels": {1: LEVEL}, "scale": 2.0}, [("levels", 1)], IS_EMBED, 3)
