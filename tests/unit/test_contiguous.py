"""A transposed activation reaches an encoder's linear layers contiguous, and the text model's as it is."""

from typing import Any

import torch

from hf_backend.encoding.contiguous import make_inputs_contiguous


class Watched(torch.nn.Linear):
    """Says whether what reached it was contiguous."""

    def forward(self, activation: torch.Tensor) -> Any:
        return activation.is_contiguous()


def test_only_linear_layers_of_encoders_are_hooked() -> None:
    tower = torch.nn.ModuleList([Watched(2, 2), torch.nn.Identity(), Watched(2, 2)])
    model: Any = torch.nn.ModuleDict({"tower": tower, "text": torch.nn.ModuleList([Watched(2, 2)])})
    assert make_inputs_contiguous(model, model["text"], kind=Watched) == 2
    transposed = torch.zeros(2, 3).T
    assert tower[0](transposed)
    assert tower[2](transposed)
    assert not tower[1](transposed).is_contiguous()
    assert not model["text"][0](transposed)
