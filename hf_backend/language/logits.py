"""Tokens that a model never gives: by the checkpoint's generation config (`suppress_tokens`), or by the HF class with its head.

Takes a model's logits; gives them with those tokens at minus infinity, as `generate` has them (Gemma4's placeholders, Chameleon's
tokens of pictures).
vLLM's own native classes do so for single models, its sampling parameters don't. `begin_suppress_tokens`, which hold for a
first token only, aren't known here.
"""

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from vllm.config import ModelConfig


class SuppressedTokens:
    """A mixin before the classes whose `compute_logits` it goes over; the language-model view keeps it."""

    if TYPE_CHECKING:
        model_config: ModelConfig

    masked_tokens: tuple[int, ...] = ()
    """Ids that the HF class with its head masks."""
    _suppressed: torch.Tensor | None = None

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        """Logits [tokens, vocabulary]; None on ranks that hold none."""
        logits: torch.Tensor | None = super().compute_logits(hidden_states)  # type: ignore[misc]
        if logits is None:
            return None
        if self._suppressed is None:
            ids = suppressed_ids(self.model_config.try_get_generation_config(), logits.shape[-1])
            ids = sorted({*ids, *self.masked_tokens})
            self._suppressed = torch.tensor(ids, dtype=torch.int64, device=logits.device)
        return logits.index_fill_(-1, self._suppressed, -torch.inf) if len(self._suppressed) else logits


def suppressed_ids(generation_config: dict[str, Any], vocabulary: int) -> list[int]:
    """The ids below `vocabulary` that the generation config suppresses; HF ignores others, too."""
    return sorted({token for token in generation_config.get("suppress_tokens") or () if 0 <= token < vocabulary})
