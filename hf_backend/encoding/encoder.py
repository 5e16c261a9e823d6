"""One modality's encoder: which of the two ways of running it gives as many rows as the prompt has places.

Takes a model and a modality; gives a function from a bucket of items to embeddings. The features method is tried first, and
the model's own forward where there is none or its rows don't fit. The first call decides, which is vLLM's memory profiling:
an encoder that fits neither way stops the start.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from hf_backend.encoding.buckets import join
from hf_backend.encoding.capture import CapturedForward
from hf_backend.encoding.features import FeaturesMethod
from hf_backend.encoding.items import EncoderItem
from hf_backend.modalities import Modality
from hf_backend.records import ModalityProfile

if TYPE_CHECKING:
    from hf_backend.records import FieldValue


class Encoder:
    """Runs the encoder of one modality."""

    def __init__(self, model: Any, modality: Modality, profile: ModalityProfile) -> None:
        self._model = model
        self._modality = modality
        self._profile = profile
        self._features = FeaturesMethod.of(model, modality)
        self._forward = CapturedForward.of(model, modality) if self._features is None else None

    def __call__(self, items: Sequence[EncoderItem], device: torch.device) -> torch.Tensor:
        """Embeddings of one bucket's items, [rows, hidden size]."""
        fields = join([item.fields for item in items], self._profile.layouts)
        if self._features is not None:
            rows = self._features(fields, device)
            if rows.shape[0] == sum(item.num_embeds for item in items) or self._forward_refuses():
                return rows
            # Not what the prompt has places for: the model's forward does more with features than the method shows.
            self._features = None
        assert self._forward is not None
        return self._run_forward(fields, items, device)

    def _forward_refuses(self) -> bool:
        """Whether the rows of the features method have to do, so that the caller says what doesn't fit."""
        try:
            self._forward = self._forward or CapturedForward.of(self._model, self._modality)
        except ValueError:
            return True
        return False

    def _run_forward(
        self, fields: "dict[str, FieldValue]", items: Sequence[EncoderItem], device: torch.device
    ) -> torch.Tensor:
        assert self._forward is not None
        expansion = torch.cat([item.expansion for item in items])
        embed_ids = torch.tensor(sorted(self._profile.embed_ids), device=expansion.device)
        return self._forward(fields, expansion, torch.isin(expansion, embed_ids), device)
