"""What a model's config and this machine leave no choice about.

Takes vLLM's model config after the class was chosen; changes it. Registered by the plug-in for our classes.
"""

import os
from typing import TYPE_CHECKING

import torch

from hf_backend.upstream import current_platform, init_logger
from hf_backend.upstream.configs import VerifyAndUpdateConfig

if TYPE_CHECKING:
    from vllm.config import ModelConfig

logger = init_logger("vllm.hf_backend")


class MachineConfig(VerifyAndUpdateConfig):
    """Switches off what this machine can't run, before the engine is made."""

    @staticmethod
    def verify_and_update_model_config(model_config: "ModelConfig") -> None:
        """vLLM's latent attention on a CPU takes no float32 weights (Kimi K2.5): full attention gives the same answers."""
        if current_platform.is_cpu() and model_config.dtype == torch.float32 and model_config.use_mla:
            os.environ["VLLM_MLA_DISABLE"] = "1"  # what vLLM's own backend does where latent attention doesn't fit
            model_config.model_arch_config = model_config.get_model_arch_config()
            logger.info("Latent attention takes no float32 weights on this CPU: full attention is used in its place.")
