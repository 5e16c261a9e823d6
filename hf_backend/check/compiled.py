"""C10 seen on one encoder: compiled it gives what it gives eagerly, and sizes that it never saw compile nothing.

Takes vLLM's model, eager until now, and a modality; compiles the encoder for good and gives JSON types. Not for what can be
compiled (`hf_backend.encoding.compile`).
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from hf_backend.encoding import compile as compiling
from hf_backend.encoding.items import EncoderItem, encoder_item
from hf_backend.probe.parts import sampling_rate
from hf_backend.probe.samples import clip, metadata, picture, video

SIZES = 12


def compare(model: Any, modality: str) -> dict[str, Any]:
    """`modules` compiled, of which `kinds`, in `graphs`; `difference` from eager, relative to the largest embedding, on `SIZES`
    items of other sizes than it was compiled on; `speed`, how many times as fast it is; `failed`, what went wrong, or None."""
    encoder, device, info = model._encoders[modality], next(model.model.parameters()).device, model._info
    probes = [encoder_item(item) for item in info.probe_items(modality)]
    items = new_sizes(info, modality)
    told: dict[str, Any] = {"modules": 0, "kinds": [], "graphs": 0, "difference": None, "speed": None, "failed": None}
    with torch.inference_mode():
        eager, eager_s = _run(encoder, items, device)
        before = compiling.num_graphs()
        groups = encoder.groups(probes, device)
        told["modules"] = compiling.compile_encoder(model.model, model.model.get_decoder(), groups, modality)
        told["graphs"] = compiling.num_graphs() - before
        modules = model.model.modules()
        told["kinds"] = sorted(
            {type(one).__name__ for one in modules if isinstance(one.forward, compiling.CompiledCall)}
        )
        unseen, compiling.UNSEEN = compiling.UNSEEN, "fail_on_recompile"
        try:
            found, compiled_s = _run(encoder, items, device)
        except RuntimeError as error:
            told["failed"] = str(error)
            return told
        finally:
            compiling.UNSEEN = unseen
    told["speed"] = round(eager_s / compiled_s, 2)
    differences = (float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, eager, strict=True))
    told["difference"] = max(differences)
    return told


def _run(
    encoder: Callable[[Sequence[EncoderItem], torch.device], torch.Tensor],
    items: Sequence[EncoderItem],
    device: torch.device,
) -> tuple[list[torch.Tensor], float]:
    """Each item's embeddings, and the median of the seconds that one takes."""
    for item in items[:2]:
        encoder([item], device)
    found, seconds = [], []
    for item in items:
        started = time.perf_counter()
        found.append(encoder([item], device))
        seconds.append(time.perf_counter() - started)
    return found, statistics.median(seconds)


def new_sizes(info: Any, modality: str) -> list[EncoderItem]:
    """`SIZES` items, no two of one size; processed."""
    alone = info.alone(modality)
    rate = sampling_rate(info.get_hf_processor())
    made: list[Any] = []
    for number in range(SIZES):
        size = 60 + 17 * number, 200 - 11 * number
        if modality == "audio":
            made.append(clip(int(rate * (0.19 + 0.106 * number)), number))
        elif modality == "video":
            frames = 2 + 2 * (number % 3)
            made.append((video(*size, frames=frames, seed=number), metadata(frames)))
        else:
            made.append(picture(*size, seed=number))
    return [encoder_item(alone(item, {})) for item in made]
