"""Numbers beyond half precision are noticed when a model is loaded, and not in an answer.

Takes embeddings of small items; raises where they aren't finite. Half precision ends at 65504, which the sums of some towers
exceed; bfloat16 ends where float32 does. Not for other precisions: what isn't a number there is so in the weights, and vLLM's
dummy ones hold some.
"""

from collections.abc import Sequence

import torch

from hf_backend.errors import UnsupportedModelError


def check_finite(embeddings: Sequence[torch.Tensor], model_name: str, modality: str) -> None:
    """Raises `UnsupportedModelError` naming a dtype that has room for them."""
    if embeddings[0].dtype != torch.float16 or all(bool(one.isfinite().all()) for one in embeddings):
        return
    raise UnsupportedModelError(
        model_name,
        found=f"embeddings of a small {modality} that are beyond the numbers of float16",
        expected="finite ones",
        do="Serve the model with --dtype bfloat16.",
    )
