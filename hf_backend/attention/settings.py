"""What vLLM has to know of a model's attention before the model exists.

vLLM asks the class registered here when it has made its settings and nothing else. Takes the settings; sets `mm_prefix` for
models whose HF class attends both ways inside items, and what keeps such spans whole.
"""

import dataclasses
from typing import TYPE_CHECKING

from hf_backend import ARCHITECTURES
from hf_backend.attention.model import rule_of
from hf_backend.attention.rule import AttentionRule, Scope
from hf_backend.upstream import init_logger
from hf_backend.upstream.attention import MODELS_CONFIG_MAP, VerifyAndUpdateConfig

if TYPE_CHECKING:
    from vllm.config import ModelConfig, VllmConfig

logger = init_logger("vllm.hf_backend")

SCHEDULER = "hf_backend.attention.scheduler.span_scheduler"
"""By name: the settings go to other processes."""


def _rule(model_config: "ModelConfig") -> AttentionRule | None:
    """The model's rule, None also where no items are to come."""
    if not model_config.is_multimodal_model or model_config.get_multimodal_config().language_model_only:
        return None
    return rule_of(model_config)


class AttentionSettings(VerifyAndUpdateConfig):
    """Settings of models whose attention goes both ways."""

    @staticmethod
    def verify_and_update_model_config(model_config: "ModelConfig") -> None:
        """Say that there are spans. vLLM itself knows a list of model types; here the HF class says it."""
        if not model_config.is_mm_prefix_lm and _rule(model_config) is not None:
            model_config.model_arch_config = dataclasses.replace(model_config.model_arch_config, is_mm_prefix_lm=True)

    @staticmethod
    def verify_and_update_config(vllm_config: "VllmConfig") -> None:
        """Keep every span in one step, and prompts that are one span out of the prefix cache."""
        rule = _rule(vllm_config.model_config)
        if rule is None:
            return
        scheduler = vllm_config.scheduler_config
        # With this vLLM refuses to start where the largest item doesn't fit a step. What it does beyond that isn't enough:
        # an item that begins where a step does may still be cut.
        scheduler.disable_chunked_mm_input = True
        if scheduler.scheduler_cls is None:
            scheduler.scheduler_cls = SCHEDULER
        else:
            logger.warning(
                "%s attends to items in both directions. With the scheduler %s an item may be cut, which is an error then.",
                vllm_config.model_config.architectures,
                scheduler.scheduler_cls,
            )
        if rule.scope is Scope.PROMPT:
            # What is cached of a prompt has seen the rest of that prompt, which may not be the next one's.
            vllm_config.cache_config.enable_prefix_caching = False
            scheduler.max_num_batched_tokens = max(
                scheduler.max_num_batched_tokens, vllm_config.model_config.max_model_len
            )


def register() -> None:
    """Register the settings for this package's model classes."""
    for name in ARCHITECTURES:
        MODELS_CONFIG_MAP[name] = AttentionSettings
