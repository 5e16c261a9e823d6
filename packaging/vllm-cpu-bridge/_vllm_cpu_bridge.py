"""Import hook: torchvision, torchaudio and torchcodec stay importable when their compiled extension cannot load.

Takes: the import of three modules, named in `REMEDIES`. Gives: the same modules, with one remedy run around their
execution. Each remedy looks first whether the extension loaded, and does nothing where it did.
Not for: providing compiled operators. Calling one without its extension fails as before.

This file runs at every interpreter start (through a `.pth` line), so it imports nothing but `sys`.
"""

import sys

_KEEP = []  # torch.library.Library objects: their definitions vanish when they are collected


def _around_torchvision_meta(module, execute):
    """Define the schemas `torchvision._meta_registrations` takes for granted, if torchvision's own did not load."""
    import torchvision.extension

    if not torchvision.extension._has_ops():
        import torch

        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            if not hasattr(torch.ops.torchvision, name):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _KEEP.append(library)
    execute(module)


def _around_torchaudio_loader(module, execute):
    """Make `_load_lib` answer "not there", which torchaudio handles, where it would raise OSError, which it does not."""
    execute(module)
    load = module._load_lib

    def _load_lib(lib):
        try:
            return load(lib)
        except OSError:
            return False

    module._load_lib = _load_lib


def _around_torchcodec(module, execute):
    """Say "cannot be imported" the way callers of an optional package expect it."""
    try:
        execute(module)
    except OSError as error:
        raise ImportError(
            f"torchcodec is installed but its extension cannot be loaded beside this torch: {error}",
            name="torchcodec",
        ) from error


REMEDIES = {
    "torchvision._meta_registrations": _around_torchvision_meta,
    "torchaudio._extension.utils": _around_torchaudio_loader,
    "torchcodec": _around_torchcodec,
}


class BridgeFinder:
    """Meta path finder: finds the three modules through the other finders, then wraps how they are executed."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """The module's own spec with its loader wrapped, or None for every other module."""
        remedy = REMEDIES.get(name)
        if remedy is None:
            return None
        for finder in sys.meta_path:
            if finder is cls or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        if spec.loader is not None:
            execute = spec.loader.exec_module
            # On the loader object of this one spec: its source, resources and file name stay the module's own.
            spec.loader.exec_module = lambda module: remedy(module, execute)
        return spec


if BridgeFinder not in sys.meta_path:
    sys.meta_path.insert(0, BridgeFinder)
