"""A weight's name in a checkpoint, in transformers' model and in vLLM's.

Takes a checkpoint's name; gives the name in the skeleton by transformers' own rules, with the converter that has to work on
the weight, and the name of a skeleton's weight in vLLM's model. Not for the weights' contents (`hf_backend.weights.convert`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hf_backend.encoding.absent import left_out


@dataclass(frozen=True, slots=True)
class Known:
    """A checkpoint's weight that has a place in the skeleton."""

    name: str
    """The skeleton's weight; the first of several that a converter makes of it."""
    pattern: str | None = None
    """The converter's pattern that matched, if one has to work on it."""
    plain: str = ""
    """The name without the converter."""


class SkeletonNames:
    """transformers' renaming of a checkpoint's weights, as its `from_pretrained` does it."""

    def __init__(self, skeleton: Any, *, strict: bool) -> None:
        """`strict`: a weight must have a place by its full name. A quantised checkpoint has weights of names of its own
        (scales, packed weights) inside modules of the skeleton, which pass under their module's name."""
        from transformers import conversion_mapping, core_model_loading

        # Renamings that depend on what was seen before are made anew for each checkpoint read.
        transforms: Sequence[Any] = conversion_mapping.get_model_conversion_mapping(skeleton)
        converter_class = core_model_loading.WeightConverter
        self.converters = [each for each in transforms if isinstance(each, converter_class)]
        self.renamings = [each for each in transforms if not isinstance(each, converter_class)]
        self.state: Mapping[str, torch.Tensor] = skeleton.state_dict()
        self._strict = strict
        self._rename: Callable[..., tuple[str, str | None]] = core_model_loading.rename_source_key
        self._prefix: str = skeleton.base_model_prefix
        self._modules = dict(skeleton.named_modules())
        buffers = {name for name, _ in skeleton.named_buffers()} - self.state.keys()
        self._recomputed = buffers
        """Buffers that no checkpoint needs to hold, though old ones do (`rotary_emb.inv_freq`)."""
        ignored = getattr(skeleton, "_keys_to_ignore_on_load_unexpected", None) or ()
        self._ignored = [re.compile(pattern) for pattern in ignored]
        group_class = getattr(core_model_loading, "GroupWeightRename", None)
        self._ordered = [each for each in self.renamings if group_class is not None and isinstance(each, group_class)]

    def depends_on_order(self, name: str) -> bool:
        """Whether `name` is renamed only if another one was seen before (Kimi K2.5's norms): such names have to be asked
        for in sorted order when all are there."""
        return any(each.compiled_sources.search(name) for each in self._ordered)

    def known(self, name: str) -> Known | None:
        """The place of a checkpoint's weight, or None where the skeleton has none for it."""
        renamed, pattern = self._rename(name, self.renamings, self.converters, self._prefix, self.state)
        if renamed in self.state:
            return Known(renamed, pattern, plain=self._plain(name, renamed) if pattern else renamed)
        # It shouldn't have been renamed, but may lack the prefix of the model without its head.
        unchanged, _ = self._rename(name, [], [], self._prefix, self.state)
        if unchanged in self.state:
            return Known(unchanged, plain=unchanged)
        plain, _ = self._rename(name, self.renamings, [])
        for candidate in self._with_and_without_prefix(plain):
            ancestor = self._ancestor(candidate)
            if ancestor and (not self._strict or self._recomputes(candidate)):
                return Known(candidate, plain=candidate)
        return None

    def may_be_left_out(self, name: str) -> bool:
        """Whether transformers doesn't want a weight that has no place, or makes it by itself."""
        plain, _ = self._rename(name, self.renamings, [])
        return any(
            self._recomputes(candidate) or any(pattern.search(candidate) for pattern in self._ignored)
            for candidate in (name, *self._with_and_without_prefix(plain))
        )

    def _recomputes(self, name: str) -> bool:
        return name in self._recomputed

    def _plain(self, name: str, target: str) -> str:
        """The name without the converter, with the prefix that the target has."""
        plain, _ = self._rename(name, self.renamings, [])
        start = f"{self._prefix}."
        if self._prefix and target.startswith(start) and not plain.startswith(start):
            return start + plain
        if self._prefix and not target.startswith(start) and plain.startswith(start):
            return plain.removeprefix(start)
        return plain

    def _with_and_without_prefix(self, name: str) -> tuple[str, ...]:
        start = f"{self._prefix}."
        if not self._prefix:
            return (name,)
        return (name, start + name, name.removeprefix(start) if name.startswith(start) else name)

    def _ancestor(self, name: str) -> str:
        """The innermost module of the skeleton that `name` lies in; "" if none, or if that only holds other modules. What
        isn't strict takes names that lie right in one of those, too: scales of an attention's cache."""
        owner = self.owner(name)
        if not owner or (not self._strict and name.rpartition(".")[0] == owner):
            return owner
        return owner if next(self._modules[owner].parameters(recurse=False), None) is not None else ""

    def owner(self, name: str) -> str:
        """The innermost module of the skeleton that `name` lies in; "" if none."""
        while name := name.rpartition(".")[0]:
            if name in self._modules:
                return name
        return ""


HEADS = {"score": "classifier"}
"""Heads that vLLM's Transformers backend keeps under another name than transformers."""


@dataclass(frozen=True, slots=True)
class ServedNames:
    """Names of the skeleton's weights in vLLM's model."""

    inside: str
    """Path in the skeleton of the model that vLLM builds without its head; "" if it is the whole skeleton."""
    head: str | None
    """Path in the skeleton of the module that gives logits."""
    tops: frozenset[str]
    """vLLM's own modules beside the HF model, as `lm_head` and `classifier`."""
    own: frozenset[str]
    """vLLM's own weights beside the HF model: `score.weight` of its adapter for classification has no place in the skeleton,
    which generates text."""
    left_out: tuple[str, ...] = ()
    """vLLM's names, with a dot behind, of modules that it has left out: towers, the text model, other ranks' layers."""

    @classmethod
    def of(cls, skeleton: Any, head: str | None, served: Any) -> "ServedNames":
        """`served` is vLLM's model, whose `.model` is the HF model without its head."""
        wanted = _hf_class(served.model).__name__
        paths = (str(path) for path, module in skeleton.named_modules() if type(module).__name__ == wanted)
        inside = next(paths, skeleton.base_model_prefix if hasattr(skeleton, skeleton.base_model_prefix) else "")
        tops = frozenset(name for name, _ in served.named_children()) - {"model"}
        own = frozenset(name for name, _ in served.named_parameters() if not name.startswith("model."))
        return cls(inside, head, tops, own, tuple(f"{path}." for path in left_out(served)))

    def served(self, name: str) -> str | None:
        """vLLM's name of the skeleton's weight `name`; None where vLLM's model has no part of it (an Omni's talker, a tower
        that isn't served)."""
        found = self._named(name)
        return None if found is None or found.startswith(self.left_out) else found

    def _named(self, name: str) -> str | None:
        if self.head is not None and name.startswith(f"{self.head}."):
            return "lm_head" + name.removeprefix(self.head)
        top, _, rest = name.partition(".")
        if (top := HEADS.get(top, top)) in self.tops:
            return f"{top}.{rest}"
        if not self.inside:
            return f"model.{name}"
        if name.startswith(f"{self.inside}."):
            return "model" + name.removeprefix(self.inside)
        return None


def _hf_class(model: Any) -> type:
    """The class that transformers (or the checkpoint's code) defines, of a model whose class is one made from it."""
    for each in type(model).__mro__:
        if not each.__module__.startswith(("hf_backend.", "vllm.")):
            return each
    return type(model)
