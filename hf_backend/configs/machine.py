"""What a model's config and this machine leave no choice about.

Takes vLLM's model config after the class was chosen; changes it. Registered by the plug-in for our classes.
"""

import math
import os
from typing import TYPE_CHECKING

import torch

from hf_backend.attention.settings import keep_spans_whole, say_spans
from hf_backend.upstream import current_platform, init_logger
from hf_backend.upstream.configs import VerifyAndUpdateConfig

if TYPE_CHECKING:
    from vllm.config import ModelConfig, VllmConfig

logger = init_logger("vllm.hf_backend")

LARGEST_BLOCK = 128
"""The largest default size of a cache block among vLLM's platforms, in tokens (CPU)."""


class MachineConfig(VerifyAndUpdateConfig):
    """Switches off what this machine can't run, before the engine is made."""

    @staticmethod
    def verify_and_update_model_config(model_config: "ModelConfig") -> None:
        """vLLM's latent attention on a CPU takes no float32 weights (Kimi K2.5): full attention gives the same answers."""
        if current_platform.is_cpu() and model_config.dtype == torch.float32 and model_config.use_mla:
            os.environ["VLLM_MLA_DISABLE"] = "1"  # what vLLM's own backend does where latent attention doesn't fit
            model_config.model_arch_config = model_config.get_model_arch_config()
            logger.info("Latent attention takes no float32 weights on this CPU: full attention is used in its place.")
        say_spans(model_config)

    @staticmethod
    def verify_and_update_config(vllm_config: "VllmConfig") -> None:
        """vLLM cuts attention chunks at the borders of its cache's blocks: a chunk must hold whole blocks. Its default does
        for real Llama 4 checkpoints."""
        keep_spans_whole(vllm_config)
        text, cache = vllm_config.model_config.hf_text_config, vllm_config.cache_config
        chunk = getattr(text, "attention_chunk_size", None)
        if chunk and chunk % LARGEST_BLOCK and not cache.user_specified_block_size:
            cache.block_size = math.gcd(chunk, LARGEST_BLOCK)
            cache.user_specified_block_size = True
            logger.info(
                "Cache blocks hold %d tokens: attention chunks of %d must hold whole blocks.", cache.block_size, chunk
            )
