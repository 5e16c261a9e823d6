"""What this package makes of a model's processor, measured as vLLM would at start-up.

Takes a path; gives the profile as JSON types. Reads config and processor, not weights. For `doctor --model`, and with
`thorough` for `check`: tokens of typical sizes, and whether an item is the same whatever was processed before it (C1).
"""

import time
from collections.abc import Mapping
from typing import Any

TYPICAL: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "image": ((224, 224), (640, 480), (1280, 720), (1920, 1080)),
    "video": ((320, 240, 8), (640, 480, 16)),
    "audio": ((1,), (10,), (30,), (120,)),
}
"""Width, height and frames in pixels and numbers; clips in seconds."""


def profile(path: str, *, trust_remote_code: bool = False, thorough: bool = False) -> dict[str, Any]:
    """Build vLLM's model config and processor for `path` and read off the profile. Raises what they raise."""
    started = time.perf_counter()
    from vllm.config import ModelConfig
    from vllm.multimodal import MULTIMODAL_REGISTRY
    from vllm.plugins import load_general_plugins

    from hf_backend.plugin import register

    load_general_plugins()
    register()  # again or, where the package is only on the path, for the first time
    imported = time.perf_counter()
    config = ModelConfig(model=path, model_impl="transformers", trust_remote_code=trust_remote_code)
    info: Any = MULTIMODAL_REGISTRY.create_processor(config).info
    if not type(info).__module__.startswith("hf_backend"):
        return {"error": f"{type(info).__module__}.{type(info).__name__} serves this model, not hf_backend."}
    found = info.profile
    largest = {name: info.largest_item(name, config.max_model_len) for name in found.modalities}
    measured = time.perf_counter()
    return {
        "architecture": config.architecture,
        "architectures": list(config.architectures),
        "max_model_len": config.max_model_len,
        "hidden_size": config.get_hidden_size(),
        "processor": found.processor_class,
        "modalities": {
            name: {
                "placeholder": one.placeholder,
                "headed": one.headed,
                "target_ids": list(one.target_ids),
                "strategy": one.strategy,
                "embed_ids": sorted(one.embed_ids),
                "layouts": {
                    field: {"joining": layout.joining.value, "dim": layout.dim, "exact": layout.exact}
                    for field, layout in sorted(one.layouts.items())
                },
                "text_fields": sorted(one.text_fields),
                "joinable": one.joinable,
                "several": one.several,
                "nested": one.nested,
                "probe_calls": one.probe_calls,
                "probe_seconds": round(one.probe_seconds, 3),
                "merges_text": one.splicing.merges_text,
                "largest": {
                    "size": list(largest[name].size),
                    "tokens": largest[name].num_tokens,
                    "embeddings": largest[name].num_embeds,
                },
                **(_more(info, name, largest[name].size) if thorough else {}),
            }
            for name, one in found.modalities.items()
        },
        "refused": dict(found.refused),
        "sampling_rate": _sampling_rate(info),
        "seconds": {
            "import": round(imported - started, 2),
            "config, profile and largest item": round(measured - imported, 2),
        },
    }


def _sampling_rate(info: Any) -> float:
    from hf_backend.probe.parts import sampling_rate

    return sampling_rate(info.get_hf_processor())


def _more(info: Any, modality: str, largest: tuple[int, ...]) -> dict[str, Any]:
    from hf_backend.errors import RequestError
    from hf_backend.probe.samples import blank, samples

    alone = info.alone(modality)
    rate = _sampling_rate(info)
    typical: list[dict[str, Any]] = []
    for size in TYPICAL[modality]:
        told: dict[str, Any] = {"size": list(size)}
        try:
            item = alone(blank(modality, [int(size[0] * rate)] if modality == "audio" else size), {})
        except RequestError as refusal:
            told["refused"] = refusal.found
        else:
            told |= {"tokens": len(item.expansion.ids), "embeddings": item.expansion.num_embeds}
        typical.append(told)
    first, second = samples(modality, rate)
    before, _, after = alone(first, {}), alone(second, {}), alone(first, {})
    started = time.perf_counter()
    fields = alone(blank(modality, largest), {}).fields
    return {
        "typical": typical,
        "independent": before.expansion == after.expansion and _equal(before.fields, after.fields),
        "largest_seconds": round(time.perf_counter() - started, 3),
        "largest_bytes": sum(_bytes(value) for value in fields.values()),
    }


def _equal(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    import torch

    def parts(value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    return before.keys() == after.keys() and all(
        len(parts(before[name])) == len(parts(after[name]))
        and all(torch.equal(a, b) for a, b in zip(parts(before[name]), parts(after[name]), strict=True))
        for name in before
    )


def _bytes(value: Any) -> int:
    if isinstance(value, list):
        return sum(_bytes(part) for part in value)
    return int(value.numel() * value.element_size())
