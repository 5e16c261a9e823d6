"""vLLM's names around attention layers, at the same paths in vLLM 0.29 to 0.32."""

from vllm.forward_context import get_forward_context, is_forward_context_available
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.layers.attention.chunked_local_attention import ChunkedLocalAttention
from vllm.model_executor.models.utils import extract_layer_index

__all__ = [
    "Attention",
    "ChunkedLocalAttention",
    "extract_layer_index",
    "get_forward_context",
    "is_forward_context_available",
]
