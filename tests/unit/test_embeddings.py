"""Embeddings that a request brings along become items of as many places as they have rows."""

import pytest
import torch

from hf_backend.errors import RequestError
from hf_backend.processing.embeddings import item_of_embeddings
from hf_backend.records import EMBEDS, ModalityProfile

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
    merges_text=False,
    frame=((1, 2), (3,)),
    nested=False,
    joint=None,
    edit=None,
    wraps=None,
    probe_calls=5,
    probe_seconds=0.0,
)


@pytest.mark.parametrize("count", [1, 4])
def test_as_many_places_as_rows_within_the_frame(count: int) -> None:
    embeddings = torch.randn(count, 8)
    item = item_of_embeddings(embeddings, PROFILE, "TinyProcessor", hidden_size=8, positions_need_fields=False)
    assert item.expansion.ids == (1, 2, *[9] * count, 3)
    assert item.expansion.is_embed == (False, False, *[True] * count, False)
    assert item.fields.keys() == {EMBEDS}
    assert torch.equal(torch.as_tensor(item.fields[EMBEDS]), embeddings)


@pytest.mark.parametrize("shape", [(8,), (1, 2, 8), (0, 8), (2, 7)])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        RequestError, match=r"TinyProcessor: found image embeddings of shape .* expected \[count, hidden"
    ):
        item_of_embeddings(torch.zeros(shape), PROFILE, "TinyProcessor", hidden_size=8, positions_need_fields=False)


def test_models_whose_positions_follow_an_items_size_need_the_item() -> None:
    """Qwen2-VL's positions are made of a picture's grid; without it the engine would fail, not the request."""
    with pytest.raises(RequestError, match="positions follow the size"):
        item_of_embeddings(torch.zeros(2, 8), PROFILE, "TinyProcessor", hidden_size=8, positions_need_fields=True)
