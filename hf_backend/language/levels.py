"""Features of several levels (deepstack): where the text model adds them, and adding them by fixed buffers.

Takes a text model and what it was given for one item; gives the layers before which each level is added, and buffers that
are added there in every step. HF's own way indexes by a mask (`hidden[mask] += level`), whose shapes depend on data: that
can't be part of a CUDA graph and breaks a compiled one. Adding a buffer that is zero everywhere else gives the same, bit
for bit. Where a level goes is measured, since each family says it in its own way (Qwen3-VL: a list, added after layers;
Granite 4 Vision: a dictionary, added before them). Not for which arguments are levels (`hf_backend.encoding.extras`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from hf_backend.encoding.extras import Path, at
from hf_backend.errors import UnsupportedModelError
from hf_backend.upstream import PPMissingLayer

BUFFER = "hf_backend_level"
"""Name of the buffer on a decoder layer, [tokens of the largest step, hidden size]."""


def decoder_layers(text_model: Any) -> torch.nn.ModuleList | None:
    """The text model's list of layers."""
    count = text_model.config.num_hidden_layers
    lists = (child for child in text_model.children() if isinstance(child, torch.nn.ModuleList))
    return next((layers for layers in lists if len(layers) == count), None)


class _GivesNothing(torch.nn.Module):
    """Stands where a layer stands: keeps what arrives, and gives zeros on."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        # In a tuple: a module as attribute would become a child.
        self._stands_for = (layer,)
        self.arrived: list[torch.Tensor] = []

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_stands_for"][0], name)

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Keep the hidden states."""
        hidden: torch.Tensor = args[0] if args else kwargs["hidden_states"]
        self.arrived.append(hidden)
        return torch.zeros_like(hidden)


@contextmanager
def _given_nothing(layers: torch.nn.ModuleList) -> Iterator[list[_GivesNothing]]:
    children = dict(layers._modules)
    stands = [_GivesNothing(layer) for layer in layers]
    try:
        layers._modules.update(zip(children, stands, strict=True))
        yield stands
    finally:
        layers._modules.update(children)


def level_places(
    text_model: Any, extras: Mapping[str, Any], levels: Sequence[Path], is_embed: torch.Tensor, hidden_size: int
) -> tuple[int, ...]:
    """The layer before which each of `levels` is added to the hidden states.

    The text model's own forward is run with `extras`, embeddings of zeros, and layers that give zeros: then what arrives at
    a layer is what was added before it. Raises `UnsupportedModelError` where that isn't one level, exactly, each.
    """
    name = type(text_model).__name__
    layers = decoder_layers(text_model)
    if layers is None:
        raise _unknown(name, "no list of its layers")
    some = at(extras, levels[0])
    zeros = torch.zeros(1, len(is_embed), hidden_size, device=some.device, dtype=some.dtype)
    positions = torch.arange(len(is_embed), device=some.device)[None]
    with _given_nothing(layers) as stands:
        # Not by a call: vLLM compiles those.
        text_model.forward(inputs_embeds=zeros, position_ids=positions, use_cache=False, **extras)
    places: dict[Path, int] = {}
    for index, stand in enumerate(stands):
        arrived = stand.arrived[0].reshape(-1, len(is_embed), hidden_size)
        if not bool(arrived.any()):
            continue
        added = [path for path in levels if path not in places and _same(at(extras, path), arrived, is_embed)]
        if not added:
            raise _unknown(name, f"something else than a level added before layer {index}")
        places[added[0]] = index
    if missing := [path for path in levels if path not in places]:
        raise _unknown(name, f"{missing} not added before any of {len(layers)} layers")
    return tuple(places[path] for path in levels)


def _same(level: torch.Tensor, arrived: torch.Tensor, is_embed: torch.Tensor) -> bool:
    """Whether what arrived, [1, tokens, hidden size], is `level` at the item's embeddings and nothing elsewhere."""
    expected = torch.zeros_like(arrived[0])
    expected[is_embed] = level.reshape(-1, level.shape[-1]).to(arrived)
    return len(arrived) == 1 and torch.equal(arrived[0], expected)


def _unknown(name: str, found: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        name,
        found=f"{found}, when given features of several levels",
        expected="each added to the hidden states before one layer, at the item's embeddings",
        do="Answers would be wrong, so the model isn't served with these items. Serve it without: --limit-mm-per-prompt.",
    )


class Levels:
    """The buffers of one text model's levels."""

    def __init__(self, text_model: Any, places: Sequence[int], max_tokens: int, hidden_size: int) -> None:
        """Raises `UnsupportedModelError` where a layer of `places` isn't on this rank of a pipeline."""
        layers = decoder_layers(text_model)
        assert layers is not None
        like = text_model.get_input_embeddings().weight
        self.places = tuple(places)
        self.hidden_size = hidden_size
        self.buffers = [
            torch.zeros(max_tokens, hidden_size, dtype=torch.get_default_dtype(), device=like.device) for _ in places
        ]
        self._written = 0
        for place, buffer in zip(places, self.buffers, strict=True):
            layer = layers[place]
            if isinstance(layer, PPMissingLayer):
                raise UnsupportedModelError(
                    type(text_model).__name__,
                    found=f"that features of a level are added before layer {place}, which isn't on the first pipeline rank",
                    expected="all such layers on the first rank, where items are embedded",
                    do="Use fewer pipeline ranks, or none: --pipeline-parallel-size 1.",
                )
            # On the layer, so that a compiled graph takes it like any of its weights.
            layer.register_buffer(BUFFER, buffer, persistent=False)
            layer.register_forward_pre_hook(_add, with_kwargs=True)

    def write(self, rows: torch.Tensor | None, is_multimodal: torch.Tensor | None) -> None:
        """Set the buffers for a step: `rows`, [embeddings, hidden size * levels], at the places of `is_multimodal`, bool
        [tokens of the step], zero elsewhere. None for a step without items; nothing of an earlier step stays."""
        if self._written:
            for buffer in self.buffers:
                buffer[: self._written].zero_()
            self._written = 0
        if rows is None or is_multimodal is None or not len(rows):
            return
        self._written = len(is_multimodal)
        at_tokens = is_multimodal.to(rows.device).unsqueeze(-1)
        for buffer, level in zip(self.buffers, rows.split(self.hidden_size, dim=-1), strict=True):
            buffer[: self._written].masked_scatter_(at_tokens, level.to(buffer.dtype))


def _add(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Before a layer: add its level to the hidden states, [1, tokens, hidden size]."""
    if args:
        return (_plus_level(module, args[0]), *args[1:]), kwargs
    return args, {**kwargs, "hidden_states": _plus_level(module, kwargs["hidden_states"])}


def _plus_level(module: torch.nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    level: torch.Tensor = getattr(module, BUFFER)
    return hidden + level[: hidden.shape[-2]]
