"""One modality's encoder: which of two ways of running it gives what the model's own forward gives.

Takes a model and a modality; gives a function from a bucket of items to embeddings. The features method is the quick way,
the model's own forward up to its text model is the reference. The first call, which is vLLM's memory profiling, runs both:
where their rows are equal the features method serves, else the forward. What neither can give stops the start.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from hf_backend.encoding.buckets import join
from hf_backend.encoding.capture import CapturedForward
from hf_backend.encoding.features import FeaturesMethod
from hf_backend.encoding.items import EncoderItem
from hf_backend.errors import UnsupportedModelError
from hf_backend.modalities import Modality
from hf_backend.records import ModalityProfile
from hf_backend.upstream import init_logger

if TYPE_CHECKING:
    from hf_backend.records import FieldValue


logger = init_logger("vllm.hf_backend")

TOLERANCE = 1e-2
"""Relative to the largest embedding: two ways of computing the same in bfloat16 differ by rounding."""


class Encoder:
    """Runs the encoder of one modality."""

    def __init__(self, model: Any, modality: Modality, profile: ModalityProfile) -> None:
        self._model = model
        self._modality = modality
        self._profile = profile
        self._features = FeaturesMethod.of(model, modality)
        self._forward = CapturedForward.of(model, modality)
        if self._features is None and self._forward is None:
            raise UnsupportedModelError(
                type(model).__name__,
                found=f"no {' or '.join(modality.features_methods)} and no text model apart from the model itself",
                expected="one of them",
                do="This model's encoder can't be called by itself in this transformers release.",
            )
        self._checked = False

    def __call__(self, items: Sequence[EncoderItem], device: torch.device) -> torch.Tensor:
        """Embeddings of one bucket's items, [rows, hidden size]."""
        fields = join([item.fields for item in items], self._profile.layouts)
        if not self._checked:
            self._check(fields, items, device)
            self._checked = True
        if self._features is not None:
            return self._features(fields, device)
        return self._run_forward(fields, items, device)

    def _check(self, fields: "dict[str, FieldValue]", items: Sequence[EncoderItem], device: torch.device) -> None:
        """Keep the features method only if the forward agrees with it."""
        if self._features is None or self._forward is None:
            return
        try:
            expected = self._run_forward(fields, items, device)
        except UnsupportedModelError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever stands in the way of a reference, there is none then
            logger.info(
                "hf_backend: %s can't be run up to its text model for %s (%s: %s); its %s is relied on unchecked.",
                type(self._model).__name__,
                self._modality.name,
                type(error).__name__,
                error,
                " or ".join(self._modality.features_methods),
            )
            return
        try:
            found = self._features(fields, device)
        except (ValueError, TypeError) as error:
            difference = f"raised {type(error).__name__}: {error}"
        else:
            if found.shape == expected.shape:
                most = expected.abs().max() * TOLERANCE
                if bool(torch.all((found - expected).abs() <= most)):
                    return
            difference = f"gave {tuple(found.shape)} where the forward has {tuple(expected.shape)}"
        logger.info(
            "hf_backend: %s runs %s encoders through the model's own forward, because the features method %s.",
            type(self._model).__name__,
            self._modality.name,
            difference,
        )
        self._features = None

    def _run_forward(
        self, fields: "dict[str, FieldValue]", items: Sequence[EncoderItem], device: torch.device
    ) -> torch.Tensor:
        assert self._forward is not None
        expansion = torch.cat([item.expansion for item in items])
        embed_ids = torch.tensor(sorted(self._profile.embed_ids), device=expansion.device)
        return self._forward(fields, expansion, torch.isin(expansion, embed_ids), device)
