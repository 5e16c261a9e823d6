"""Arguments by signature, embeddings from every form in which HF models return them."""

from types import SimpleNamespace

import pytest
import torch

from hf_backend.encoding.features import FeaturesMethod, as_rows
from hf_backend.modalities import IMAGE

ROWS = torch.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    "pooled",
    [
        ROWS,
        ROWS.reshape(3, 2, 2),
        ROWS.reshape(1, 3, 2, 2),
        list(ROWS.split([1, 2, 3])),
        tuple(ROWS.split([4, 2])),
        [ROWS[:4].reshape(2, 2, 2), ROWS[4:]],
    ],
    ids=["2-D", "3-D", "4-D", "list", "tuple", "list of unequal dimensions"],
)
def test_rows_keep_their_order(pooled: object) -> None:
    assert torch.equal(as_rows(SimpleNamespace(pooler_output=pooled)), ROWS)
    assert torch.equal(as_rows(pooled), ROWS)


@pytest.mark.parametrize("pooled", [None, [], torch.zeros(3), {"a": 1}])
def test_what_holds_no_rows_is_refused(pooled: object) -> None:
    with pytest.raises(ValueError, match="features method returned"):
        as_rows(SimpleNamespace(pooler_output=pooled))


class Model(torch.nn.Module):
    """The signatures of HF models: LLaVA takes image sizes through its keyword arguments."""

    def get_image_features(self, pixel_values, image_grid_thw=None, **kwargs):  # type: ignore[no-untyped-def]
        self.seen = {"image_grid_thw": image_grid_thw, **kwargs}
        return SimpleNamespace(pooler_output=pixel_values)

    def forward(self, input_ids=None, pixel_values=None, image_sizes=None, **kwargs):  # type: ignore[no-untyped-def]
        raise AssertionError


def test_a_method_is_given_what_it_or_the_forward_names() -> None:
    model = Model()
    method = FeaturesMethod.of(model, IMAGE)
    assert method is not None
    fields = {
        "pixel_values": ROWS,
        "image_sizes": torch.tensor([[1, 2]]),
        "num_crops": torch.tensor([3]),
        "input_ids": torch.tensor([4]),
    }
    assert torch.equal(method(fields, torch.device("cpu")), ROWS)
    assert model.seen.keys() == {"image_grid_thw", "image_sizes", "return_dict"}


def test_the_omni_models_mean_their_last_hidden_state() -> None:
    assert torch.equal(as_rows(SimpleNamespace(pooler_output=None, last_hidden_state=ROWS)), ROWS)


class NeedsThePrompt(torch.nn.Module):
    """MusicFlamingo's method takes the prompt's ids too."""

    def get_image_features(self, pixel_values, input_ids):  # type: ignore[no-untyped-def]
        raise AssertionError


@pytest.mark.parametrize("model", [torch.nn.Linear(1, 1), NeedsThePrompt()])
def test_a_model_without_a_method_for_items_alone(model: torch.nn.Module) -> None:
    assert FeaturesMethod.of(model, IMAGE) is None


def test_rows_that_a_mask_leaves_out_are_of_no_item() -> None:
    """Gemma 4's clips: the processor pads samples, and a row of padding has no place in the prompt."""
    padded = torch.cat([ROWS, ROWS + 1])[None]
    mask = torch.tensor([[1] * len(ROWS) + [0] * len(ROWS)])
    assert torch.equal(as_rows(SimpleNamespace(pooler_output=padded, attention_mask=mask)), ROWS)
    other = torch.ones(1, 3)
    assert len(as_rows(SimpleNamespace(pooler_output=padded, attention_mask=other))) == 2 * len(ROWS), (
        "of something else"
    )
