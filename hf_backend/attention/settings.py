"""What vLLM has to know of a model's attention before the model exists.

Takes vLLM's settings; says in them that there are spans, for models whose HF class attends both ways inside items, and keeps
what such a span needs in one step. Called by `hf_backend.configs.machine`, which vLLM asks once its settings are made.
"""

import dataclasses
from typing import TYPE_CHECKING

from hf_backend.attention.model import rule_of
from hf_backend.attention.rule import AttentionRule, Scope
from hf_backend.upstream import init_logger

if TYPE_CHECKING:
    from vllm.config import ModelConfig, VllmConfig

logger = init_logger("vllm.hf_backend")


def needed_rule(model_config: "ModelConfig") -> AttentionRule | None:
    """The model's rule, None also where no items can come."""
    if not model_config.is_multimodal_model or model_config.skip_tokenizer_init:
        return None
    limits = model_config.get_multimodal_config()
    if all(limits.get_limit_per_prompt(modality) == 0 for modality in ("image", "video")):
        return None
    return rule_of(model_config)


def say_spans(model_config: "ModelConfig") -> None:
    """Have vLLM report the spans of each step (`mm_prefix`). vLLM itself knows some model types (gemma3, paligemma); what the
    HF class does is asked of the class."""
    rule = needed_rule(model_config)
    if rule is None or model_config.is_mm_prefix_lm:
        return
    model_config.hf_config.is_mm_prefix_lm = True
    model_config.model_arch_config = dataclasses.replace(model_config.model_arch_config, is_mm_prefix_lm=True)
    model_config.__dict__.pop("is_mm_prefix_lm", None)  # a cached property


def keep_spans_whole(vllm_config: "VllmConfig") -> None:
    """A span's rows see keys behind them, so a step has all of a span or nothing.

    For items vLLM has a switch, which it sets on GPUs only. Where all of a prompt is one span (PaliGemma), prompts are computed
    in one step each, and a prefix that is shared with another prompt isn't shared in the cache: its keys depend on what follows.
    """
    rule = needed_rule(vllm_config.model_config)
    if rule is None:
        return
    scheduler = vllm_config.scheduler_config
    scheduler.disable_chunked_mm_input = True
    if rule.scope is not Scope.PROMPT:
        return
    length = vllm_config.model_config.max_model_len
    if scheduler.max_num_batched_tokens < length:
        logger.info("A step has %d tokens: this model needs all of a prompt in one.", length)
        scheduler.max_num_batched_tokens = length
    scheduler.enable_chunked_prefill = False
    vllm_config.cache_config.enable_prefix_caching = False
