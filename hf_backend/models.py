"""The concrete classes vLLM loads: the mixin in front of each of vLLM's own, under vLLM's own name.

Importing this module imports vLLM and torch; `hf_backend.__getattr__` does so on first access.
"""

from hf_backend.attention import settings
from hf_backend.mixin import GenericMultiModalMixin
from hf_backend.processing.dummy import DummyInputsBuilder
from hf_backend.processing.info import ProcessingInfo
from hf_backend.processing.processor import Processor
from hf_backend.upstream import MULTIMODAL_REGISTRY, intree

settings.register()

_register = MULTIMODAL_REGISTRY.register_processor(Processor, info=ProcessingInfo, dummy_inputs=DummyInputsBuilder)


@_register
class TransformersMultiModalForCausalLM(GenericMultiModalMixin, intree.TransformersMultiModalForCausalLM):
    """Text generation."""


@_register
class TransformersMultiModalMoEForCausalLM(GenericMultiModalMixin, intree.TransformersMultiModalMoEForCausalLM):
    """Text generation with mixture-of-experts layers."""


@_register
class TransformersMultiModalEmbeddingModel(GenericMultiModalMixin, intree.TransformersMultiModalEmbeddingModel):
    """Embeddings of prompts with items."""


@_register
class TransformersMultiModalForSequenceClassification(
    GenericMultiModalMixin, intree.TransformersMultiModalForSequenceClassification
):
    """Classification of prompts with items."""
