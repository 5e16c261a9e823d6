"""The only place that imports names from vLLM which have moved or may move, so that a release which moves one is a change
in one file.

Everything here imports from the same path in vLLM 0.29 to 0.33, and has the same signature where this package calls or
overrides it (`_apply_hf_processor_main(mm_items, kwargs)`, `_get_mm_fields_config`, `_get_prompt_updates`,
`_apply_prompt_updates(token_ids, mm_prompt_updates)`, `apply(inputs, timing_ctx)`). The one difference is the name under
which vLLM passes the second argument of the first: `hf_processor_mm_kwargs` in 0.29 and 0.30, `hf_kwargs` from 0.31. The
override takes both; the older name can go when 0.30 is no longer supported.
"""

from vllm.inputs import MultiModalDataBuiltins, MultiModalDataDict, MultiModalInput
from vllm.logger import init_logger
from vllm.model_executor.layers.linear import LinearBase
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
from vllm.model_executor.models import transformers as intree
from vllm.model_executor.models.interfaces import MultiModalEmbeddings
from vllm.model_executor.models.transformers.multimodal import MultiModalMixin
from vllm.model_executor.models.utils import PPMissingLayer, StageMissingLayer
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.multimodal.inputs import MultiModalFeatureSpec, MultiModalFieldConfig, MultiModalKwargsItems, PlaceholderRange
from vllm.multimodal.parse import DictEmbeddingItems, ModalityDataItems, MultiModalDataItems, MultiModalDataParser
from vllm.multimodal.processing import (
    BaseDummyInputsBuilder,
    BaseMultiModalProcessor,
    BaseProcessingInfo,
    ProcessorInputs,
    PromptReplacement,
    PromptUpdate,
    PromptUpdateDetails,
    TimingContext,
)
from vllm.multimodal.processing.processor import PlaceholderFeaturesInfo, ResolvedPromptUpdate
from vllm.platforms import current_platform
from vllm.renderers import TokenizeParams

__all__ = [
    "MULTIMODAL_REGISTRY",
    "BaseDummyInputsBuilder",
    "BaseMultiModalProcessor",
    "BaseProcessingInfo",
    "DictEmbeddingItems",
    "LinearBase",
    "ModalityDataItems",
    "MultiModalDataBuiltins",
    "MultiModalDataDict",
    "MultiModalDataItems",
    "MultiModalDataParser",
    "MultiModalEmbeddings",
    "MultiModalFeatureSpec",
    "MultiModalFieldConfig",
    "MultiModalInput",
    "MultiModalKwargsItems",
    "MultiModalMixin",
    "PPMissingLayer",
    "PlaceholderFeaturesInfo",
    "PlaceholderRange",
    "ProcessorInputs",
    "PromptReplacement",
    "PromptUpdate",
    "PromptUpdateDetails",
    "ResolvedPromptUpdate",
    "StageMissingLayer",
    "TimingContext",
    "TokenizeParams",
    "VocabParallelEmbedding",
    "current_platform",
    "init_logger",
    "intree",
]
