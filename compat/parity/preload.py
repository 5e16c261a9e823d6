"""What every engine of a run would do again, done once before the children are forked.

Takes nothing; imports what an engine imports and tells the garbage collector to leave it alone. It only saves time: without
it, the children do the same. Never imports `hf_backend`: whether that takes part is each child's choice.
"""

import contextlib
import gc
import importlib

MODULES = (
    "vllm",
    "vllm.v1.engine.llm_engine",
    "vllm.v1.executor.uniproc_executor",
    "vllm.v1.worker.cpu_worker",
    "vllm.v1.attention.backends.cpu_attn",
    "vllm.model_executor.models.transformers",
    "vllm.multimodal.processing",
)
"""Large parts of vLLM that it imports only when it needs them; some have another name in another version."""

ARCHITECTURE = "TransformersMultiModalForCausalLM"
"""vLLM's name of the class that serves multimodal models in its Transformers backend."""


def import_engine() -> None:
    """Import vLLM and its engine, then take all living objects out of garbage collection.

    vLLM collects garbage several times while it starts, which takes half a second each with all of torch to look through.
    """
    import vllm  # noqa: F401  (this one must be there)

    for name in MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def release() -> None:
    """Undo the freeze when the children are done; what stays frozen is reported as leaked by extensions at exit."""
    gc.unfreeze()


def inspect_model_class(peer: str) -> None:
    """Let vLLM look at the class that serves `peer`, so that its cache holds the result. Run it in a child.

    vLLM does that in a process of its own, once for each content of the class's file; several engines that start at once
    would all wait for one each.
    """
    from compat.parity.engine import NATIVE, choose_peer

    if peer == NATIVE:
        return
    choose_peer(peer)
    from vllm import ModelRegistry

    ModelRegistry.models[ARCHITECTURE].inspect_model_cls()
