"""What this package measures of one model's processor, as vLLM would at start-up.

Takes ANSWER_FILE and a model path; gives the profile as JSON (placeholder, strategy, layouts, embed ids, cost, largest
item), or {"error": text}. Reads the config and the processor, not the weights.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any


def model_profile(path: str) -> dict[str, Any]:
    """Build vLLM's model config and processor for `path` and read off the profile."""
    started = time.perf_counter()
    from vllm.config import ModelConfig
    from vllm.multimodal import MULTIMODAL_REGISTRY
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    imported = time.perf_counter()
    config = ModelConfig(model=path, model_impl="transformers")
    info: Any = MULTIMODAL_REGISTRY.create_processor(config).info
    if not type(info).__module__.startswith("hf_backend"):
        return {"error": f"{type(info).__module__}.{type(info).__name__} serves this model, not hf_backend."}
    profile = info.profile
    largest = {name: info.largest_item(name, config.max_model_len) for name in profile.modalities}
    return {
        "architecture": config.architecture,
        "max_model_len": config.max_model_len,
        "processor": profile.processor_class,
        "modalities": {
            name: {
                "placeholder": one.placeholder,
                "target_ids": list(one.target_ids),
                "strategy": one.strategy,
                "embed_ids": sorted(one.embed_ids),
                "layouts": {
                    field: {"joining": layout.joining.value, "dim": layout.dim, "exact": layout.exact}
                    for field, layout in sorted(one.layouts.items())
                },
                "text_fields": sorted(one.text_fields),
                "joinable": one.joinable,
                "probe_calls": one.probe_calls,
                "probe_seconds": round(one.probe_seconds, 3),
                "merges_text": one.merges_text,
                "largest": {
                    "size": list(largest[name].size),
                    "tokens": largest[name].num_tokens,
                    "embeddings": largest[name].num_embeds,
                },
            }
            for name, one in profile.modalities.items()
        },
        "refused": dict(profile.refused),
        "seconds": {
            "import": round(imported - started, 2),
            "config, profile and largest item": round(time.perf_counter() - imported, 2),
        },
    }


def main(answer: Path, path: str) -> None:
    """Write the profile, or what stopped it, into `answer`."""
    try:
        found = model_profile(path)
    except Exception as error:  # whatever vLLM, transformers or the probe object to is the answer
        found = {"error": f"{type(error).__name__}: {error}"}
    answer.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
