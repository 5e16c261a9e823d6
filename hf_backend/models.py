"""The concrete classes vLLM loads: the mixin in front of each of vLLM's own, under vLLM's own name.

Importing this module imports vLLM and torch; `hf_backend.__getattr__` does so on first access.
"""

from typing import TYPE_CHECKING

import torch

from hf_backend.language.logits import SuppressedTokens
from hf_backend.mixin import GenericMultiModalMixin
from hf_backend.processing.dummy import DummyInputsBuilder
from hf_backend.processing.info import ProcessingInfo
from hf_backend.processing.processor import Processor
from hf_backend.upstream import MULTIMODAL_REGISTRY, intree

if TYPE_CHECKING:
    from vllm.config import VllmConfig

_register = MULTIMODAL_REGISTRY.register_processor(Processor, info=ProcessingInfo, dummy_inputs=DummyInputsBuilder)


@_register
class TransformersMultiModalForCausalLM(
    GenericMultiModalMixin, SuppressedTokens, intree.TransformersMultiModalForCausalLM
):
    """Text generation."""


@_register
class TransformersMultiModalMoEForCausalLM(
    GenericMultiModalMixin, SuppressedTokens, intree.TransformersMultiModalMoEForCausalLM
):
    """Text generation with mixture-of-experts layers."""


@_register
class TransformersMultiModalEmbeddingModel(GenericMultiModalMixin, intree.TransformersMultiModalEmbeddingModel):
    """Embeddings of prompts with items."""


@_register
class TransformersMultiModalForSequenceClassification(
    GenericMultiModalMixin, intree.TransformersMultiModalForSequenceClassification
):
    """Classification of prompts with items."""

    default_seq_pooling_type = "LAST"
    """transformers' classes for text models, and for multimodal ones over them, classify the last token; vLLM's default is
    the first one, which in a causal model has seen no item."""

    def __init__(self, *, vllm_config: "VllmConfig", prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        if isinstance(self.classifier, torch.nn.Linear):
            # vLLM gives every head [requests, 1, hidden size], for those that take a sequence's first token themselves
            # (Roberta). From a linear one [requests, 1, labels] would come back, which vLLM then refuses (Gemma 3).
            self.classifier.__class__ = torch.nn.Linear
