"""The door: what vLLM calls when it loads its plug-ins, in the API server, the engine and every worker process.

Takes nothing but the environment; registers our classes over vLLM's names and says so once a process. Imports neither
torch nor our models: they are registered by name.
"""

import os

from hf_backend import ARCHITECTURES, __version__, versions

DISABLE_VARIABLE = "HF_BACKEND_DISABLE"
"""Set to anything but "" or "0", it leaves vLLM as it is."""

_registered = False


def disabled() -> bool:
    """Whether the environment switches the plug-in off."""
    return os.environ.get(DISABLE_VARIABLE, "0") not in ("", "0")


def register() -> None:
    """Register our classes over vLLM's multimodal classes of the Transformers backend. Safe to call again."""
    global _registered
    from vllm.logger import init_logger

    logger = init_logger("vllm.hf_backend")
    if disabled():
        logger.info("hf_backend %s is switched off by %s.", __version__, DISABLE_VARIABLE)
        return
    from vllm import ModelRegistry

    for name in ARCHITECTURES:
        ModelRegistry.register_model(name, f"hf_backend:{name}")
    if not _registered:
        _registered = True
        logger.info(
            "hf_backend %s serves --model-impl transformers for multimodal models (%s) on vLLM %s;"
            " placeholders by %s (transformers %s).",
            __version__,
            ", ".join(ARCHITECTURES),
            versions.vllm_version(),
            versions.preferred_strategy(),
            versions.transformers_version(),
        )
