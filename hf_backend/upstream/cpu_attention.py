"""The names of vLLM's CPU attention backend, apart from the others: a build for another platform may not import it.

The same in vLLM 0.29 to 0.32.
"""

from vllm.config import get_layers_from_vllm_config
from vllm.model_executor.layers.attention import Attention
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.attention.backends.cpu_attn import (
    CPUAttentionBackend,
    CPUAttentionBackendImpl,
    CPUAttentionMetadata,
    CPUAttentionMetadataBuilder,
)

__all__ = [
    "Attention",
    "CPUAttentionBackend",
    "CPUAttentionBackendImpl",
    "CPUAttentionMetadata",
    "CPUAttentionMetadataBuilder",
    "CommonAttentionMetadata",
    "get_layers_from_vllm_config",
]
