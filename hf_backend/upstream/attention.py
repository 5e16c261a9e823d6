"""vLLM's names around attention layers, their settings and the scheduler.

The same in vLLM 0.29 to 0.32. `MODELS_CONFIG_MAP` maps the name of a model class to what vLLM asks about its settings
before it makes anything; a plain dict, in which a plug-in can have its own models' entries.
"""

from vllm.config import get_current_vllm_config
from vllm.forward_context import get_forward_context, is_forward_context_available
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.models.config import MODELS_CONFIG_MAP, VerifyAndUpdateConfig
from vllm.model_executor.models.utils import extract_layer_index

__all__ = [
    "MODELS_CONFIG_MAP",
    "Attention",
    "VerifyAndUpdateConfig",
    "extract_layer_index",
    "get_current_vllm_config",
    "get_forward_context",
    "is_forward_context_available",
]
