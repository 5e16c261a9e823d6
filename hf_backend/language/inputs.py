"""What the text model is given in a step: embeddings, and what else its signature takes.

Takes a step's token ids and items' embeddings; gives embeddings, and keeps levels and per-token inputs in fixed buffers,
which `extras` hands to the text model's call. Made once, when the weights are there, from what was measured
(`hf_backend.language.lookup`, `hf_backend.encoding.encoder`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from hf_backend.encoding.encoder import Encoder
from hf_backend.encoding.extras import Path
from hf_backend.errors import UnsupportedModelError
from hf_backend.language.levels import Levels, level_places
from hf_backend.language.lookup import Lookup
from hf_backend.language.woven import in_order_of_places


class TextInputs:
    """A step's inputs of the text model."""

    def __init__(
        self,
        text_model: Any,
        lookup: Lookup,
        max_tokens: int,
        hidden_size: int,
        woven: Mapping[str, torch.Tensor] | None = None,
    ) -> None:
        """`max_tokens` is the largest step's number of tokens. `woven`: modality to the ids that embeddings replace, int64 [ids],
        where items of two modalities may be woven into one another (`hf_backend.modalities.WEAVING`)."""
        self._woven = woven
        self._text_model = text_model
        self._lookup = lookup
        self._max_tokens = max_tokens
        self._hidden_size = hidden_size
        self._levels: Levels | None = None
        self.level_paths: tuple[Path, ...] = ()
        self._per_token: dict[str, torch.Tensor] = {}
        ids = torch.zeros(1, dtype=torch.int64, device=next(text_model.parameters()).device)
        for name, table in lookup.per_token.items():
            row = table(ids)
            self._per_token[name] = row.new_zeros(max_tokens, *row.shape[1:])

    @property
    def trivial(self) -> bool:
        """Whether the text model may as well be given ids."""
        return self._lookup.trivial and self._levels is None

    def describe(self) -> dict[str, list[str]]:
        """What a compiled graph of the text model depends on."""
        places = [] if self._levels is None else [str(place) for place in self._levels.places]
        return {"levels before layers": places, "per token": sorted(self._per_token)}

    def take(self, encoders: Iterable[Encoder]) -> None:
        """Learn from the encoders what their items bring along."""
        for encoder in encoders:
            if not encoder.levels:
                continue
            if self._levels is not None:
                self._check_same_levels(encoder)
                continue
            assert encoder.reference is not None
            places = level_places(
                self._text_model,
                encoder.reference.extras,
                encoder.levels,
                encoder.reference_is_embed,
                self._hidden_size,
            )
            self._levels = Levels(self._text_model, places, self._max_tokens, self._hidden_size)
            self.level_paths = encoder.levels

    def check_pipeline(self, ranks: int) -> None:
        """Per-token inputs are mixed with embeddings, which only the first rank of a pipeline has."""
        if ranks > 1 and self._per_token:
            raise UnsupportedModelError(
                type(self._text_model).__name__,
                found=f"{', '.join(self._per_token)}, which its layers on all {ranks} pipeline ranks take",
                expected="that later ranks need nothing but hidden states",
                do="Use tensor parallelism in place of pipeline ranks: --pipeline-parallel-size 1.",
            )

    def _check_same_levels(self, encoder: Encoder) -> None:
        if encoder.levels != self.level_paths:
            raise UnsupportedModelError(
                type(self._text_model).__name__,
                found=f"levels {encoder.levels} for one modality and {self.level_paths} for another",
                expected="the same ones",
                do="Serve the model with one of these modalities only: --limit-mm-per-prompt.",
            )

    def embed(
        self, ids: torch.Tensor, items: Sequence[torch.Tensor] | None, is_multimodal: torch.Tensor | None
    ) -> torch.Tensor:
        """Embeddings of a step, [tokens, hidden size]; its other inputs go to the buffers.

        `items` are rows of items, [embeddings, hidden size * (1 + levels)], in the order of their places in
        `is_multimodal`, bool [tokens].
        """
        embeddings = self._lookup.embeddings(ids)
        for name, table in self._lookup.per_token.items():
            self._per_token[name][: len(ids)].copy_(table(ids))
        rows = None
        if items is not None and len(items) and is_multimodal is not None:
            rows = self._rows(items)
            if self._woven is not None:
                rows = in_order_of_places(items, rows, ids, is_multimodal, self._woven)
        if self._levels is not None:
            self._levels.write(None if rows is None else rows[:, self._hidden_size :], is_multimodal)
        if rows is None or is_multimodal is None:
            return embeddings
        places = is_multimodal.to(rows.device, non_blocking=True).unsqueeze(-1)
        return embeddings.masked_scatter(places, rows[:, : self._hidden_size].to(embeddings.dtype))

    def _rows(self, items: Sequence[torch.Tensor]) -> torch.Tensor:
        """All items' rows. Embeddings that a request brought along may come without levels; those are zero then."""
        width = self._hidden_size * (1 + len(self.level_paths))
        short = any(item.shape[-1] != width for item in items)
        if short:
            items = [torch.nn.functional.pad(item, (0, width - item.shape[-1])) for item in items]
        return torch.cat(list(items))

    def extras(self, tokens: int) -> Mapping[str, torch.Tensor]:
        """Arguments for the text model's call beside embeddings and positions, [1, tokens, ...] each."""
        return {name: buffer[None, :tokens] for name, buffer in self._per_token.items()}
