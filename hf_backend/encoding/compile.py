"""torch.compile of encoders (vLLM's `compile_mm_encoder`): what compiles whole, in the sizes that were seen to vary.

Takes a function that runs an encoder on groups of probe items; compiles the largest modules that it calls and that torch can
trace without a break, and gives how many. Every module's calls are recorded first: where the sizes of its tensors differ
between groups of items is what varies, whatever dimension that is. A compiled module has to give what was recorded, with at
most two graphs (one item's batch is a size of its own to torch); else the modules inside it are tried, and what never
compiles stays eager. At request time nothing is compiled: a call that fits no graph runs eagerly. Not for the text model,
which vLLM compiles by itself.

vLLM's own decoration of encoder classes takes dimension 0 of every tensor for the one that varies, and one that can't be
traced (Qwen2-VL reads sizes out of its grid) fails at the first request.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from hf_backend.upstream import init_logger

if TYPE_CHECKING:
    from vllm.config import VllmConfig

logger = init_logger("vllm.hf_backend")

TOLERANCE = 1e-4
"""Relative to the largest value of an output in float32 (C10); `_tolerance` gives those of other dtypes."""
MOST_GRAPHS = 2
"""For one item and for several: torch takes a size of one for a constant."""
UNSEEN = "eager_on_recompile"
"""What a call does that fits no graph (`torch.compiler.set_stance`)."""


@dataclass(slots=True)
class Call:
    """One recorded call of a module."""

    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    output: Any = None


@dataclass(slots=True)
class Record:
    """Calls of every module, a list for each group of items."""

    calls: dict[torch.nn.Module, list[list[Call]]] = field(default_factory=dict)


class CompiledCall:
    """Stands in the place of a module's `forward`."""

    def __init__(self, module: torch.nn.Module, varying: Mapping[Hashable, frozenset[int]]) -> None:
        self.eager = module.forward
        self._compiled = torch.compile(module.forward, fullgraph=True)
        self._varying = varying

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The module's output; by a graph where one fits."""
        arguments, keywords = pytree.tree_map_only(torch.Tensor, _inference_tensor, (arguments, keywords))
        with torch.compiler.set_stance(UNSEEN):
            return self._compiled(*arguments, **keywords)

    def first(self, call: Call) -> Any:
        """As a call, but compiling a graph that fits in every size that varies."""
        for key, leaf in _leaves(call):
            if isinstance(leaf, torch.Tensor):
                for dim in self._varying.get(key, ()):
                    if leaf.shape[dim] > 1:
                        torch._dynamo.maybe_mark_dynamic(leaf, dim)
        return self._compiled(*call.arguments, **call.keywords)


def compiles_encoders(vllm_config: "VllmConfig") -> bool:
    """Whether the user asked for it: `compile_mm_encoder`, unless nothing is compiled at all (`--enforce-eager`)."""
    compilation = vllm_config.compilation_config
    return bool(compilation.compile_mm_encoder and compilation.mode)


def _inference_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """A graph fits one kind of tensor only, and what comes from outside the engine's inference mode is of the other kind."""
    return tensor.clone() if torch.is_inference_mode_enabled() and not tensor.is_inference() else tensor


def compile_encoder(
    model: torch.nn.Module,
    text_model: torch.nn.Module,
    runs: Sequence[Callable[[], object]],
    what: str,
) -> int:
    """Compile what `runs` call of `model` outside `text_model`; returns the number of compiled modules.

    Each of `runs` runs the encoder on another group of items: one, several, a larger one. `what` names the encoder in the log.
    """
    inside = set(text_model.modules())
    outside = [module for module in model.modules() if module not in inside and module is not model]
    record = Record()
    for number, run in enumerate(runs):
        with _recording(outside, record, number, len(runs)):
            run()
    reasons: dict[str, str] = {}
    compiled = sum(_compile_largest(child, record, reasons) for child in model.children() if child is not text_model)
    if compiled:
        logger.info("hf_backend: %s: %d modules compiled.", what, compiled)
    else:
        why = "; ".join(f"{name}: {reason}" for name, reason in list(reasons.items())[:3])
        logger.warning("hf_backend: %s stays eager: %s.", what, why or "nothing large enough to compile was called")
    return compiled


def _compile_largest(module: torch.nn.Module, record: Record, reasons: dict[str, str]) -> int:
    """Compile `module`, or as much as can be of what is inside it."""
    if isinstance(module.forward, CompiledCall):
        return 1
    calls = record.calls.get(module)
    if calls is not None and _worthwhile(module) and all(calls):
        reason = _compile(module, calls)
        if reason is None:
            return 1
        reasons.setdefault(type(module).__name__, reason)
    return sum(_compile_largest(child, record, reasons) for child in module.children())


def _worthwhile(module: torch.nn.Module) -> bool:
    """Whether there is anything to fuse: one layer alone is one kernel as it is."""
    return sum(1 for each in module.modules() if next(each.parameters(recurse=False), None) is not None) > 1


def _compile(module: torch.nn.Module, calls: Sequence[Sequence[Call]]) -> str | None:
    """Put a compiled call in the place of `module.forward`; the reason why not otherwise."""
    stand = CompiledCall(module, _varying([each for group in calls for each in group]))
    before = num_graphs()
    try:
        for group in calls:
            for call in group:
                if not _close(stand.first(call), call.output):
                    return "compiled, it gives something else"
    except Exception as error:  # noqa: BLE001 - whatever stops torch from compiling leaves the module as it is
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
    if (graphs := num_graphs() - before) > MOST_GRAPHS:
        return f"{graphs} graphs for {len(calls)} groups of items"
    module.forward = stand
    return None


def num_graphs() -> int:
    """How many graphs torch has compiled in this process."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


@contextmanager
def _recording(modules: Sequence[torch.nn.Module], record: Record, number: int, groups: int) -> Iterator[None]:
    """Record the calls of `modules` as those of group `number`."""
    open_calls: list[Call] = []

    def before(module: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        call = Call(*pytree.tree_map_only(torch.Tensor, _copy, (arguments, keywords)))
        record.calls.setdefault(module, [[] for _ in range(groups)])[number].append(call)
        open_calls.append(call)

    def after(module: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any], output: Any) -> None:
        open_calls.pop().output = pytree.tree_map_only(torch.Tensor, _copy, output)

    handles = [module.register_forward_pre_hook(before, with_kwargs=True) for module in modules]
    handles += [module.register_forward_hook(after, with_kwargs=True) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, which a graph is held to: LLaVA's connector is given a slice without the class token."""
    if 0 in tensor.stride():
        return tensor  # expanded: nothing can be written to it
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def _leaves(call: Call) -> list[tuple[Hashable, Any]]:
    leaves, _ = pytree.tree_flatten_with_path((call.arguments, dict(call.keywords)))
    return [(pytree.keystr(path), leaf) for path, leaf in leaves]


def _varying(calls: Sequence[Call]) -> dict[Hashable, frozenset[int]]:
    """For each tensor among the arguments, the dimensions whose size isn't the same in every call."""
    shapes: dict[Hashable, list[torch.Size]] = {}
    for call in calls:
        for key, leaf in _leaves(call):
            if isinstance(leaf, torch.Tensor):
                shapes.setdefault(key, []).append(leaf.shape)
    return {
        key: frozenset(dim for dim, sizes in enumerate(zip(*seen, strict=False)) if len(set(sizes)) > 1)
        for key, seen in shapes.items()
    }


def _close(found: Any, expected: Any) -> bool:
    ours, form = pytree.tree_flatten(found)
    theirs, expected_form = pytree.tree_flatten(expected)
    return form == expected_form and all(
        one.shape == other.shape and _near(one, other) if isinstance(one, torch.Tensor) else one == other
        for one, other in zip(ours, theirs, strict=True)
    )


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not one.is_floating_point() or one.numel() == 0:
        return torch.equal(one, other)
    return bool(torch.all((one - other).abs() <= other.abs().max() * _tolerance(one.dtype)))


def _tolerance(dtype: torch.dtype) -> float:
    return max(TOLERANCE, 4 * torch.finfo(dtype).eps)
