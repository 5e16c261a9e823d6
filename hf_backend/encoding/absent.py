"""A model of which only the encoders are served (vLLM's `--mm-encoder-only`).

Takes an HF model whose text model vLLM has left out; lets the model's own forward run as far as that text model, whose tables of
token embeddings stand as zeros without taking memory. Then encoders are measured and run as in a whole model. Not for towers that
are left out, which nothing runs.
"""

from collections.abc import Iterator

import torch

from hf_backend.errors import UnsupportedModelError
from hf_backend.upstream import PPMissingLayer, StageMissingLayer

LANGUAGE_MODEL = "language_model"
"""vLLM's name for the part."""


class ZeroTable(torch.nn.Module):
    """Stands where a text model that was left out has a table of embeddings."""

    def __init__(self, table: torch.nn.Embedding, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = table.num_embeddings, table.embedding_dim
        self.padding_idx = table.padding_idx
        # Some forwards read its device. No row of it has memory.
        self.weight = torch.zeros((), dtype=dtype, device=device).expand(self.num_embeddings, self.embedding_dim)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Zeros, [*ids, embedding size]; items' embeddings overwrite what matters to an encoder."""
        return self.weight.new_zeros(*ids.shape, self.embedding_dim)


def let_tables_be_zeros(model: torch.nn.Module, dtype: torch.dtype, device: torch.device) -> None:
    """Put zeros in the place of the tables of the text model that `model`, vLLM's, was built without.

    Raises `UnsupportedModelError` where vLLM has left out more than that, or nothing.
    """
    stands = [
        each for each in model.modules() if isinstance(each, StageMissingLayer) and each.stage_name == LANGUAGE_MODEL
    ]
    whole = model._modules["model"]
    if whole in stands or not stands:
        raise UnsupportedModelError(
            type(whole.__dict__["module"] if whole in stands else whole).__name__,
            found="no text model apart from the model itself",
            expected="one that can be left out where only encoders are served",
            do="Serve the whole model: leave out --mm-encoder-only, or let the instance be ec_both in place of ec_producer.",
        )
    for stand in stands:
        for module in list(stand.__dict__["module"].modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, torch.nn.Embedding):
                    module._modules[name] = ZeroTable(child, dtype, device)


def left_out(model: torch.nn.Module) -> Iterator[str]:
    """Names of the modules that vLLM has left out of `model`: towers, the text model, layers of other pipeline ranks."""
    for name, module in model.named_modules():
        if isinstance(module, (StageMissingLayer, PPMissingLayer)):
            yield name


def stands_for(module: torch.nn.Module, wanted: torch.nn.Module) -> bool:
    """Whether `module` is `wanted`, or stands where vLLM has left it out."""
    return module is wanted or (isinstance(module, StageMissingLayer) and module.__dict__["module"] is wanted)
