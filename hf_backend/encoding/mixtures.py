"""Whether an item's embeddings hang on items of other modalities in its prompt.

Takes a model, its encoders and a small item of each modality; gives nothing. An item is encoded without its prompt and kept for
others, so that a model which does more than that can't be served with both modalities.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import torch

from hf_backend.encoding.encoder import Encoder, equal
from hf_backend.encoding.items import EncoderItem
from hf_backend.errors import HFBackendError, UnsupportedModelError
from hf_backend.upstream import init_logger

logger = init_logger("vllm.hf_backend")


def check_mixtures(
    model: Any, encoders: Mapping[str, Encoder], items: Mapping[str, EncoderItem], device: torch.device
) -> None:
    """Run the forward on each pair of modalities.

    Raises `UnsupportedModelError` where an item's embeddings differ from those it has alone: Phi-4-multimodal sends clips
    through another projector if there is a picture in the prompt.
    """
    for name, other in itertools.permutations(encoders, 2):
        try:
            found = encoders[name].beside(items[name], items[other], encoders[other], device)
        except HFBackendError:
            continue  # said for each modality alone, or about the text between
        except (
            ArithmeticError,
            AssertionError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            # A forward may want more of a prompt than two expansions; what it takes of them alone was checked.
            logger.debug("hf_backend: %s beside %s wasn't checked: %s: %s", name, other, type(error).__name__, error)
            continue
        if found is None:
            continue
        alone = encoders[name]([items[name]], device)[:, : found.shape[1]]  # without levels behind it
        if not equal(found, alone):
            raise UnsupportedModelError(
                type(model).__name__,
                found=f"that {name} items get other embeddings if there is an {other} item in the prompt",
                expected="embeddings that hang on nothing but the item",
                do=f"Serve it without one of them: --limit-mm-per-prompt '{{\"{other}\": 0}}' or '{{\"{name}\": 0}}'.",
            )
