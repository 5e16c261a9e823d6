"""A vLLM engine on a checkpoint, and what can be seen inside it.

Takes a folder, the served modalities and requests; gives JSON types: who serves, how each encoder runs, whether items stand
apart in it (C9), what the largest item costs, which of the model's attention this machine's backend would ignore, and how the
answers compare with those of transformers. One process each: vLLM's engine runs in it.
"""

import functools
import os
import resource
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hf_backend.check import reference
from hf_backend.check.cases import NUM_TOKENS, TOGETHER, Request
from hf_backend.check.compare import EngineAnswer, compare

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
}


def run(
    folder: str,
    modalities: Sequence[str],
    requests: Sequence[Request],
    *,
    rate: float,
    max_model_len: int,
    largest: Mapping[str, Sequence[int]],
    refused: Sequence[str],
    answers: str | None,
    compiles: bool,
    trust_remote_code: bool,
) -> dict[str, Any]:
    """Start the engine, look inside, ask, and at last compile the encoders if `compiles`.

    `answers` is the file with those of transformers. Raises what vLLM raises.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if not compiles:
        # vLLM compiles a helper for log-probabilities even where it runs eagerly, which takes seconds.
        os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    from vllm import LLM

    from hf_backend.plugin import register

    register()
    memory, started = _peak_mb(), time.perf_counter()
    llm = LLM(
        folder,
        model_impl="transformers",
        dtype="float32",
        enforce_eager=True,
        max_model_len=max_model_len,
        max_num_seqs=4,
        limit_mm_per_prompt=dict.fromkeys(modalities, 2),
        trust_remote_code=trust_remote_code,
        disable_log_stats=True,
    )
    said: dict[str, Any] = {
        "start_seconds": round(time.perf_counter() - started, 1),
        "start_memory_mb": round(_peak_mb() - memory),
    }
    (inside,) = llm.apply_model(lambda model: _inside(model, modalities, largest))
    said |= inside
    if answers is not None:
        said["parity"] = _ask(llm, requests, reference.load(Path(answers)), rate, refused)
    if compiles:
        from hf_backend.check.compiled import compare as compare_compiled

        for name, encoder in said["encoders"].items():
            (encoder["compiled"],) = llm.apply_model(functools.partial(compare_compiled, modality=name))
    return said


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _inside(model: Any, modalities: Sequence[str], largest: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    served_by = f"{type(model).__module__}.{type(model).__name__}"
    said: dict[str, Any] = {"class": served_by, "model": type(model.model).__name__, "encoders": {}}
    if served_by.startswith("hf_backend."):
        said["encoders"] = {name: _encoder(model, name, largest[name]) for name in modalities}
    said["attention"] = _attention(model)
    return said


def _encoder(model: Any, modality: str, largest: Sequence[int]) -> dict[str, Any]:
    import torch

    from hf_backend.probe.samples import blank

    encoder = model._encoders.get(modality)
    told: dict[str, Any] = {
        "way": getattr(encoder, "way", None),
        "joinable": getattr(encoder, "joinable", None),
        "compiled": None,
    }
    first, second = model._info.probe_items(modality)
    with torch.inference_mode():
        together = embed(model, modality, [first, second, first])
        alone = [embed(model, modality, [item])[0] for item in (first, second, first)]
        scale = max(float(rows.abs().max()) for rows in alone) or 1.0
        told["apart"] = max(
            float((a - b).abs().max()) / scale if a.shape == b.shape else float("inf")
            for a, b in zip(together, alone, strict=True)
        )
        item = model._info.alone(modality)(blank(modality, tuple(largest)), {})
        memory, started = _peak_mb(), time.perf_counter()
        embed(model, modality, [item])
        told["largest_seconds"] = round(time.perf_counter() - started, 2)
        told["largest_memory_mb"] = round(_peak_mb() - memory)
    return told


def embed(model: Any, modality: str, items: Sequence[Any]) -> Any:
    """As vLLM asks for embeddings: by the names that fields have between processor and model."""
    import torch

    from hf_backend.records import EXPANSION, NUM_EMBEDS, wire_name

    fields = {name: [item.fields[name] for item in items] for name in items[0].fields}
    fields[NUM_EMBEDS] = [torch.tensor(item.expansion.num_embeds) for item in items]
    fields[EXPANSION] = [torch.tensor(item.expansion.ids) for item in items]
    return model.embed_multimodal(**{wire_name(modality, name): values for name, values in fields.items()})


def _attention(model: Any) -> dict[str, Any]:
    """The backends of the attention layers, and what the model wants that one of them says it can't."""
    layers = [layer for layer in model.modules() if hasattr(layer, "attn_backend")]
    layers = layers or list(getattr(model, "attention_instances", {}).values())  # where modules don't hold them
    backends = {layer.attn_backend for layer in layers}
    ignored = []
    if getattr(model.model_config, "is_mm_prefix_lm", False):
        ignored += [
            f"{backend.get_name()} ignores attention to items in both directions"
            for backend in backends
            if not backend.supports_mm_prefix()
        ]
    return {"backends": sorted(backend.get_name() for backend in backends), "ignored": ignored}


def _ask(
    llm: Any, requests: Sequence[Request], answers: Mapping[str, Any], rate: float, refused: Sequence[str]
) -> dict[str, Any]:
    """Each request on its own, then all at once: other neighbours in the batch, other items in an encoder's call."""
    asked = [request for request in requests if request.name not in refused]
    told: dict[str, Any] = {}
    for request in asked:
        told[request.name] = _compared(llm, [request], answers, rate)[0]
    for request, verdict in zip(asked, _compared(llm, asked, answers, rate), strict=True):
        told[request.name + TOGETHER] = verdict
    return told


def _compared(llm: Any, requests: Sequence[Request], answers: Mapping[str, Any], rate: float) -> list[dict[str, Any]]:
    from vllm import SamplingParams

    greedy = SamplingParams(temperature=0.0, max_tokens=NUM_TOKENS, logprobs=5, ignore_eos=True, detokenize=False)
    try:
        outputs = llm.generate([_prompt(request, rate) for request in requests], greedy, use_tqdm=False)
    except ValueError as error:
        return [{"right": False, "wrong": f"{type(error).__name__}: {error}", "difference": None}] * len(requests)
    told: list[dict[str, Any]] = []
    for request, output in zip(requests, outputs, strict=True):
        found = EngineAnswer(
            tuple(output.prompt_token_ids),
            tuple(output.outputs[0].token_ids),
            tuple({token: one.logprob for token, one in step.items()} for step in output.outputs[0].logprobs),
        )
        verdict = compare(answers[request.name], found)
        compared = verdict.difference == verdict.difference
        told.append(
            {
                "right": verdict.wrong is None,
                "wrong": verdict.wrong,
                "difference": verdict.difference if compared else None,
            }
        )
    return told


def _prompt(request: Request, rate: float) -> dict[str, Any]:
    from hf_backend.probe.samples import samples

    data: dict[str, list[Any]] = {}
    for modality, index in request.items:
        item = samples(modality, rate)[index]
        data.setdefault(modality, []).append((item, rate) if modality == "audio" else item)
    return {"prompt": request.text, **({"multi_modal_data": data} if data else {})}
