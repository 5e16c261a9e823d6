"""Which classes vLLM would serve in a process of its own, and on what platform.

Takes ANSWER_FILE and architecture names; loads vLLM's general plug-ins as every vLLM process does, then gives
{"version", "platform", "device", "served": {architecture: module or null}, "plugin_error"}, or {"error": text} where vLLM
does not even import. Not for loading a model.
"""

import importlib
import json
import sys
import traceback
from pathlib import Path


def serving(architectures: list[str]) -> dict[str, object]:
    """Ask vLLM. Raises what importing vLLM raises."""
    import vllm
    from vllm import ModelRegistry
    from vllm.platforms import current_platform
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    served: dict[str, str | None] = {}
    for name in architectures:
        model = ModelRegistry.models.get(name)
        served[name] = None if model is None else _module_of(model)
    device = ""
    if current_platform.device_type:
        try:
            device = str(current_platform.get_device_name())
        except Exception as error:  # a driver that is there and does not answer
            device = f"no name ({type(error).__name__}: {error})"
    return {
        "version": str(vllm.__version__),
        "platform": current_platform.device_type or "none",
        "device": device,
        "served": served,
        "plugin_error": _plugin_error(),
    }


def _module_of(model: object) -> str:
    """A lazily registered class names its module; one registered as a class is asked."""
    name = getattr(model, "module_name", None)
    if isinstance(name, str):
        return name
    return str(getattr(getattr(model, "model_cls", None), "__module__", type(model).__module__))


def _plugin_error() -> str:
    """vLLM logs and swallows a plug-in that does not import, so ask again."""
    try:
        importlib.import_module("hf_backend.plugin")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    try:
        answer = serving(sys.argv[2:])
    except Exception as error:  # vLLM, or a library it needs, is broken: that is the answer
        traceback.print_exc()
        answer = {"error": f"{type(error).__name__}: {error}"}
    Path(sys.argv[1]).write_text(json.dumps(answer))
