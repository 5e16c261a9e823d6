"""The door: what vLLM calls when it loads its plug-ins, in the API server, the engine and every worker process.

Takes nothing but the environment; registers our classes over vLLM's names and says so once a process. Which model is served
and how, `hf_backend.probe.profile` says when it has measured it. Doesn't import our models: they are registered by
name.
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
        from hf_backend.configs.register import register_configs

        register_configs(ARCHITECTURES)
        _registered = True
        # In a server's own process vLLM gives its loggers a handler only after it has read the command line, and plug-ins
        # are loaded while it reads: there this line is lost, and the one by `hf_backend.probe.profile` is the first.
        logger.info(
            "hf_backend %s took over from vLLM %s: %s.", __version__, versions.vllm_version(), ", ".join(ARCHITECTURES)
        )
