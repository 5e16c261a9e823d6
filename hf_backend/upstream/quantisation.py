"""vLLM's names around quantisation, at the same paths in vLLM 0.29 to 0.32."""

from vllm.model_executor.layers.fused_moe import RoutedExperts
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
from vllm.transformers_utils.config import get_safetensors_params_metadata

__all__ = [
    "LinearBase",
    "RoutedExperts",
    "UnquantizedLinearMethod",
    "VocabParallelEmbedding",
    "get_safetensors_params_metadata",
]
