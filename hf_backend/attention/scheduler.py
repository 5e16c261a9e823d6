"""vLLM's schedulers, which never cut a span.

vLLM rolls a step back to before an item that it can't take whole, but not where the item is the step's first (as of 0.32):
under load, when other requests have taken most of a step, it is cut. The rows of a span have to see all of its keys, so the
part of it has to wait for a step that has room.
"""

import functools
from collections.abc import Sequence
from typing import Any

from hf_backend.attention.model import rule_of
from hf_backend.attention.rule import AttentionRule, Scope, Span
from hf_backend.upstream.scheduler import AsyncScheduler, Scheduler


def uncut(num_done: int, num_new: int, spans: Sequence[Span]) -> int:
    """How many of `num_new` tokens after `num_done` can be computed without ending inside one of `spans`; 0 if none."""
    end = num_done + num_new
    for first, last in sorted(spans, reverse=True):
        if first < end <= last:
            end = max(first, num_done)
            # Where a part of the span is done (a hit in the prefix cache), the rest of it is a span as well.
    return end - num_done


class _KeepsSpans:
    """Shortens what is about to be scheduled to where no span is cut."""

    vllm_config: Any

    @functools.cached_property
    def _rule(self) -> AttentionRule | None:
        """Read once: vLLM schedules thousands of times."""
        return rule_of(self.vllm_config.model_config)

    def _try_schedule_encoder_inputs(
        self, request: Any, num_computed_tokens: int, num_new_tokens: int, *args: Any, **kwargs: Any
    ) -> Any:
        rule = self._rule
        features = [feature for feature in request.mm_features if feature.modality != "audio"]
        if rule is not None and features:
            if rule.scope is Scope.PROMPT:
                spans = [(0, request.num_prompt_tokens - 1)]
            else:
                spans = [span for feature in features for span in feature.mm_position.extract_embeds_range()]
            num_new_tokens = uncut(num_computed_tokens, num_new_tokens, spans)
        return super()._try_schedule_encoder_inputs(  # type: ignore[misc]
            request, num_computed_tokens, num_new_tokens, *args, **kwargs
        )


class SpanScheduler(_KeepsSpans, Scheduler):
    """For steps one after the other."""


class AsyncSpanScheduler(_KeepsSpans, AsyncScheduler):
    """For steps that are scheduled ahead."""


def span_scheduler(*args: Any, vllm_config: Any, **kwargs: Any) -> Any:
    """The one of the two that vLLM would have chosen; it decides after a model's settings are made."""
    chosen = AsyncSpanScheduler if vllm_config.scheduler_config.async_scheduling else SpanScheduler
    return chosen(*args, vllm_config=vllm_config, **kwargs)
