"""One modality's encoder: which of two ways of running it gives what the model's own forward gives.

Takes a model, a modality and two probe items; gives a function from a bucket of items to embeddings. The features method is
the quick way, the model's own forward up to its text model is the reference. At start both are run: where their rows are
equal the features method serves, else the forward. What neither can give stops the start.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from hf_backend.encoding.buckets import bucket, join
from hf_backend.encoding.capture import CapturedForward
from hf_backend.encoding.features import FeaturesMethod
from hf_backend.encoding.items import EncoderItem
from hf_backend.errors import HFBackendError, UnsupportedModelError
from hf_backend.modalities import Modality
from hf_backend.records import ModalityProfile
from hf_backend.upstream import init_logger

if TYPE_CHECKING:
    from hf_backend.records import FieldValue


logger = init_logger("vllm.hf_backend")

TOLERANCE = 1e-2
"""Relative to the largest embedding: two ways of computing the same in bfloat16 differ by rounding."""


@contextlib.contextmanager
def refused_by_model(model: Any, modality: str) -> Iterator[None]:
    """Say what to do where a model's own code fails on two small items (Kimi K2.5's videos in transformers 5.19)."""
    try:
        yield
    except HFBackendError:
        raise
    except Exception as error:
        raise UnsupportedModelError(
            type(model).__name__,
            found=f"that transformers' own code for {modality} items raised {type(error).__name__}: {error}",
            expected="embeddings of two small items",
            do=f"Serve the model without them: --limit-mm-per-prompt '{{\"{modality}\": 0}}'.",
        ) from error


class Encoder:
    """Runs the encoder of one modality."""

    def __init__(
        self,
        model: Any,
        modality: Modality,
        profile: ModalityProfile,
        probes: Sequence[EncoderItem],
        device: torch.device,
    ) -> None:
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
        for item in probes:
            self._hold_to_forward(item, device)
        self.joinable = profile.joinable and self._joins(probes, device)
        """Whether items may share a call: the processor joins them, and the tower keeps them apart (C9)."""

    def __call__(self, items: Sequence[EncoderItem], device: torch.device) -> torch.Tensor:
        """Embeddings of one bucket's items, [rows, hidden size]."""
        fields = join([item.fields for item in items], self._profile.layouts)
        if self._features is not None:
            return self._features(fields, device)
        return self._run_forward(fields, items, device)

    def beside(
        self, item: EncoderItem, other: EncoderItem, other_encoder: "Encoder", device: torch.device
    ) -> torch.Tensor | None:
        """Embeddings of `item`, as the model's own forward makes them in a prompt with `other`, of another modality, behind it;
        None where there is no forward to ask."""
        if self._forward is None:
            return None
        fields = {**other.fields, **item.fields}
        expansion = torch.cat([item.expansion, other.expansion])
        embed_ids = torch.tensor(
            sorted(self._profile.embed_ids | other_encoder._profile.embed_ids), device=expansion.device
        )
        is_embed = torch.isin(expansion, embed_ids)
        count = int(is_embed[: len(item.expansion)].sum())
        return self._forward(fields, expansion, is_embed, device)[:count]

    def _hold_to_forward(self, item: EncoderItem, device: torch.device) -> None:
        """Keep the features method only if the forward agrees with it on `item`."""
        if self._forward is None:
            return
        fields = dict(item.fields)
        try:
            expected = self._run_forward(fields, [item], device)
        except UnsupportedModelError:
            raise
        except Exception as error:
            if self._features is None:
                raise
            # Whatever stands in the way of a reference, there is none then.
            self._say("relies on the features method unchecked, because the forward raised", error)
            return
        if self._features is None:
            return
        try:
            found = self._features(fields, device)
        except (ValueError, TypeError) as error:
            self._say("runs through the model's own forward, because the features method raised", error)
            self._features = None
            return
        if not equal(found, expected):
            shapes = f"{tuple(found.shape)} where the forward has {tuple(expected.shape)}"
            self._say("runs through the model's own forward, because the features method gave", shapes)
            self._features = None

    def _joins(self, probes: Sequence[EncoderItem], device: torch.device) -> bool:
        """Whether an item beside others gives what it gives alone."""
        buckets = bucket([item.fields for item in probes], self._profile.layouts, joinable=True)
        # Items of two sizes may share no call; the first then stands beside itself.
        together = list(probes) if len(buckets) == 1 else [probes[0], probes[0]]
        alone = torch.cat([self([item], device) for item in together])
        try:
            joined = self(together, device)
        except (ValueError, TypeError, RuntimeError) as error:
            self._say("takes one item a call, because a call with two raised", error)
            return False
        if not equal(joined, alone):
            self._say("takes one item a call, because a call with two gave", "other embeddings than two calls")
            return False
        return True

    def _say(self, what: str, why: object) -> None:
        reason = f"{type(why).__name__}: {why}" if isinstance(why, Exception) else why
        logger.info("hf_backend: %s of %s %s %s.", self._modality.name, type(self._model).__name__, what, reason)

    def _run_forward(
        self, fields: "dict[str, FieldValue]", items: Sequence[EncoderItem], device: torch.device
    ) -> torch.Tensor:
        assert self._forward is not None
        expansion = torch.cat([item.expansion for item in items])
        embed_ids = torch.tensor(sorted(self._profile.embed_ids), device=expansion.device)
        return self._forward(fields, expansion, torch.isin(expansion, embed_ids), device)


def equal(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Equal shapes, and values but for rounding."""
    if found.shape != expected.shape:
        return False
    return bool(torch.all((found - expected).abs() <= expected.abs().max() * TOLERANCE))
