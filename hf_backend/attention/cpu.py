"""vLLM's CPU attention backend with attention both ways inside spans.

vLLM's own takes no notice of the spans it is told (`mm_req_doc_ranges`). Its kernel can do it, a piece of a request at a
time: keys and values of a step are in the cache when attention runs, and each sequence has a causal flag of its own. So the
metadata's builder cuts a step's rows at the spans (`hf_backend.attention.spans`), and the implementation calls the kernel
once a pass. A step without a span that its rows touch runs as vLLM has it. Import on a CPU only.
"""

import copy
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from hf_backend.attention.rule import LayerRule, Scope, Span
from hf_backend.attention.spans import Pass, cut
from hf_backend.upstream.cpu_attention import (
    Attention,
    CommonAttentionMetadata,
    CPUAttentionBackend,
    CPUAttentionBackendImpl,
    CPUAttentionMetadata,
    CPUAttentionMetadataBuilder,
    get_layers_from_vllm_config,
)
from hf_backend.versions import causal_flags_are_int32

Key = tuple[int, LayerRule]
"""What passes depend on: a layer's window as vLLM writes it (-1 for none), and its rule."""

NO_WINDOW = -1
CAUSAL_FLAGS = torch.int32 if causal_flags_are_int32() else torch.bool


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One pass, ready for the kernel."""

    window: int
    """As vLLM writes it, -1 for none."""
    rows: torch.Tensor | None
    """The step's rows that it computes, int64, in its order; None for all, in theirs."""
    metadata: CPUAttentionMetadata


@dataclass
class SpanMetadata(CPUAttentionMetadata):
    """vLLM's metadata of a step, with the calls that take its place where there are spans."""

    calls: Mapping[Key, Sequence[KernelCall]] = field(default_factory=dict)


class SpanMetadataBuilder(CPUAttentionMetadataBuilder):
    """Builds vLLM's metadata, and the calls for a step with spans."""

    window_size: int

    def __init__(self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        layers = get_layers_from_vllm_config(vllm_config, Attention, layer_names).values()
        # One group may hold layers of different windows, where vLLM's hybrid cache manager is off.
        self._keys: set[Key] = {(layer.impl.sliding_window, layer.item_rule) for layer in layers}

    def build(
        self, common_prefix_len: int, common_attn_metadata: CommonAttentionMetadata, fast_build: bool = False
    ) -> SpanMetadata:
        """See the class in vLLM. Raises `SpanCut` for a span that goes on behind the step's rows."""
        plain = super().build(common_prefix_len, common_attn_metadata, fast_build)
        own = {field.name: getattr(plain, field.name) for field in dataclasses.fields(plain)}
        if not any((common_attn_metadata.mm_req_doc_ranges or {}).values()):
            return SpanMetadata(**own)
        starts = common_attn_metadata.query_start_loc_cpu.tolist()
        query_lens = [stop - start for start, stop in itertools.pairwise(starts)]
        seq_lens = common_attn_metadata.seq_lens.tolist()
        calls: dict[Key, Sequence[KernelCall]] = {}
        for window, rule in self._keys:
            spans = spans_of(common_attn_metadata.mm_req_doc_ranges, query_lens, seq_lens, rule.scope)
            passes = cut(query_lens, seq_lens, spans, window if window > 0 else None, rule.clamped)
            if passes:
                calls[window, rule] = [
                    self._call(one, common_attn_metadata, whole=number == 0) for number, one in enumerate(passes)
                ]
        return SpanMetadata(**own, calls=calls)

    def _call(self, one: Pass, common: CommonAttentionMetadata, *, whole: bool) -> KernelCall:
        lens = torch.tensor([piece.stop - piece.start for piece in one.pieces], dtype=torch.int32)
        starts = torch.nn.functional.pad(lens.cumsum(0), (1, 0)).to(torch.int32)
        seq_lens = torch.tensor([piece.seq_len for piece in one.pieces], dtype=torch.int32)
        pieces = dataclasses.replace(
            common,
            num_reqs=len(one.pieces),
            num_actual_tokens=int(lens.sum()),
            max_query_len=int(lens.max()),
            max_seq_len=int(seq_lens.max()),
            query_start_loc=starts,
            query_start_loc_cpu=starts,
            seq_lens=seq_lens,
            block_table_tensor=common.block_table_tensor[[piece.request for piece in one.pieces]],
            causal=torch.tensor([piece.causal for piece in one.pieces], dtype=CAUSAL_FLAGS),
        )
        window = NO_WINDOW if one.window is None else one.window
        # The work is planned with the builder's window, which a wider pass mustn't be planned with.
        planned: int = self.window_size
        if planned > 0:
            self.window_size = window
        try:
            metadata = super().build(0, pieces)
        finally:
            self.window_size = planned
        rows = None if whole else torch.cat([torch.arange(piece.start, piece.stop) for piece in one.pieces])
        return KernelCall(window, rows, metadata)


def spans_of(
    ranges: Mapping[int, Sequence[Span]], query_lens: Sequence[int], seq_lens: Sequence[int], scope: Scope
) -> dict[int, list[Span]]:
    """The spans of a step's requests: their runs of embeddings as vLLM tells them, or their whole prompts.

    A prompt with items is computed in one step (`hf_backend.attention.scheduler`), so the rows of a request of which nothing
    was computed before are its prompt. (One that vLLM preempts is computed anew with what it had answered until then, which
    is then seen as prompt.)
    """
    if scope is Scope.ITEM:
        return {request: list(found) for request, found in ranges.items()}
    return {
        request: [(0, length - 1)]
        for request, (num_rows, length) in enumerate(zip(query_lens, seq_lens, strict=True))
        if num_rows == length and ranges.get(request)
    }


class SpanImpl(CPUAttentionBackendImpl):
    """Calls vLLM's kernel once a pass."""

    def forward(
        self,
        layer: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        attn_metadata: SpanMetadata | None,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """See the class in vLLM."""
        scales = (output_scale, output_block_scale)
        calls = () if attn_metadata is None else attn_metadata.calls.get((self.sliding_window, layer.item_rule), ())
        if not calls:
            return super().forward(layer, query, key, value, kv_cache, attn_metadata, output, *scales)
        for call in calls:
            if call.rows is None:
                super().forward(layer, query, key, value, kv_cache, call.metadata, output, *scales)
            else:
                wider = copy.copy(self)
                wider.sliding_window = call.window
                part = torch.empty_like(output[call.rows])
                super(SpanImpl, wider).forward(
                    layer, query[call.rows], key, value, kv_cache, call.metadata, part, *scales
                )
                output[call.rows] = part
        return output


class SpanBackend(CPUAttentionBackend):
    """vLLM's CPU backend, told apart by nothing but what it is made of: vLLM looks its name up in a table."""

    @classmethod
    def supports_mm_prefix(cls) -> bool:
        """Whether spans are honoured."""
        return True

    @staticmethod
    def get_impl_cls() -> type[SpanImpl]:
        """See the class in vLLM."""
        return SpanImpl

    @staticmethod
    def get_builder_cls() -> type[SpanMetadataBuilder]:
        """See the class in vLLM."""
        return SpanMetadataBuilder
