"""Run any Hugging Face multimodal model in vLLM's Transformers backend.

The package is a vLLM plug-in: vLLM calls `hf_backend.plugin.register` at start-up, which registers the classes named
here over vLLM's own. The classes are built on first access, so importing the package costs nothing (no torch, no vLLM).
They are registered from this file because vLLM caches what it learned of a model class under a hash of the registered
module's file, and hashes the whole package when that file is an `__init__.py`: a change anywhere in the package is seen.
"""

from typing import Any

__version__ = "0.1.0"

ARCHITECTURES = (
    "TransformersMultiModalForCausalLM",
    "TransformersMultiModalMoEForCausalLM",
    "TransformersMultiModalEmbeddingModel",
    "TransformersMultiModalForSequenceClassification",
)
"""vLLM's names of the Transformers backend's multimodal classes, the same in vLLM 0.29 to 0.33. Our classes carry the
same names: vLLM compares them to tell whether it runs the Transformers backend (`ModelConfig.using_transformers_backend`),
and turns MLA, norm fusion and MTP off when they differ."""

__all__ = ["ARCHITECTURES", "__version__"]


def __getattr__(name: str) -> Any:
    if name in ARCHITECTURES:
        from hf_backend import models

        return getattr(models, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
