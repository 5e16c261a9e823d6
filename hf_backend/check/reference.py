"""The tiny model, and what transformers answers with it.

Takes a checkpoint's folder and the requests; writes the tiny checkpoint and the answers, and gives what became of them as
JSON types. Never imports vLLM, which decorates transformers' classes.
"""

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hf_backend import modalities
from hf_backend.check import tiny
from hf_backend.check.cases import NUM_TOKENS, Request
from hf_backend.check.compare import Answer
from hf_backend.probe.arguments import arguments
from hf_backend.probe.parts import rate_options
from hf_backend.probe.samples import samples


def run(
    source: str,
    target: str,
    requests: Sequence[Request],
    *,
    rate: float,
    nested: Sequence[str],
    weights: bool,
    answers: bool,
    trust_remote_code: bool,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Make the tiny checkpoint in `target` (unless `weights`), and `answers.npz` in it if `answers`.

    `rate` in Hz is that of clips, `nested` names modalities whose items the
    processor takes as a list for each prompt. Raises what transformers raises, but for requests that the processor refuses.
    """
    from transformers import AutoConfig, AutoProcessor

    AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code)  # says best what is wrong with a config
    processor = AutoProcessor.from_pretrained(source, trust_remote_code=trust_remote_code)
    inputs: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for request in requests:
        try:
            inputs[request.name] = prepare(processor, request, rate, nested)
        except ValueError as error:
            refused[request.name] = f"{type(error).__name__}: {error}"
    said: dict[str, Any] = {"refused": refused}
    started = time.perf_counter()
    where = Path(source if weights else target)
    if not weights:
        trials = [inputs[request.name] for request in requests if request.name in inputs and len(request.items) < 2]
        made = tiny.make(Path(source), where, trials[:4], trust_remote_code=trust_remote_code, say=say)
        said["tiny"] = {"how": made.how, "parameters": made.parameters}
    said["seconds_to_make"] = round(time.perf_counter() - started, 2)
    if answers:
        started = time.perf_counter()
        found, failed = generate(where, inputs, trust_remote_code=trust_remote_code)
        refused |= failed
        save(Path(target) / "answers.npz", found)
        said["seconds_to_answer"] = round(time.perf_counter() - started, 2)
    said["longest"] = max((each["input_ids"].shape[1] for each in inputs.values()), default=0)
    return said


def prepare(processor: Any, request: Request, rate: float, nested: Sequence[str]) -> Any:
    """The processor's output for `request` in float32, as tensors with a batch dimension of one."""
    import torch

    data: dict[str, Any] = {}
    for name in dict.fromkeys(modality for modality, _ in request.items):
        modality, both = replace(modalities.get(name), nested=name in nested), samples(name, rate)
        given, options = arguments(modality, [both[index] for index in request.of(name)])
        data |= {**given, **options, **rate_options(processor, modality)}
    if "audio" in data and "audios" in inspect.signature(type(processor).__call__).parameters:
        data["audios"] = data.pop("audio")  # Qwen2-Audio kept the argument's old name for long
    output = processor(text=[request.text], return_tensors="pt", **data)
    return output.to(torch.float32)


def greedy(model: Any, inputs: Mapping[str, Any], **options: Any) -> Answer:
    """The answer of `generate` to one prompt: `inputs` as the processor gives them, with a batch dimension of one."""
    import torch

    with torch.no_grad():
        output = model.generate(**inputs, do_sample=False, return_dict_in_generate=True, output_logits=True, **options)
    length = inputs["input_ids"].shape[1]
    return Answer(
        prompt_ids=tuple(inputs["input_ids"][0].tolist()),
        tokens=tuple(output.sequences[0, length:].tolist()),
        logprobs=torch.stack([logits[0] for logits in output.logits]).float().log_softmax(-1).numpy(),
    )


def generate(
    folder: Path, inputs: Mapping[str, Any], *, trust_remote_code: bool
) -> tuple[dict[str, Answer], dict[str, str]]:
    """Greedy answers of the model in `folder` to each of `inputs`, and why there is none to the others.

    Qwen2-VL takes two pictures that touch for one, and finds that the sizes don't fit.
    """
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
    chosen = tiny.model_class(config, folder, trust_remote_code=trust_remote_code)
    model = chosen.from_pretrained(folder, dtype=torch.float32).eval()
    found: dict[str, Answer] = {}
    failed: dict[str, str] = {}
    for name, each in inputs.items():
        try:
            found[name] = greedy(model, each, max_new_tokens=NUM_TOKENS, min_new_tokens=NUM_TOKENS)
        except Exception as error:  # noqa: BLE001 - whatever keeps transformers from answering, there is no answer
            failed[name] = f"{type(error).__name__}: {error}"
    return found, failed


def save(place: Path, answers: Mapping[str, Answer]) -> None:
    """Write `answers` into one file; `load` reads it."""
    import numpy as np

    arrays: dict[str, Any] = {}
    for name, answer in answers.items():
        arrays |= {
            f"{name}/prompt_ids": np.array(answer.prompt_ids),
            f"{name}/tokens": np.array(answer.tokens),
            f"{name}/logprobs": answer.logprobs,
        }
    place.parent.mkdir(parents=True, exist_ok=True)
    np.savez(place, **arrays)


def load(place: Path) -> dict[str, Answer]:
    """The answers that `save` wrote."""
    import numpy as np

    with np.load(place) as arrays:
        return {
            name: Answer(
                tuple(arrays[f"{name}/prompt_ids"].tolist()),
                tuple(arrays[f"{name}/tokens"].tolist()),
                arrays[f"{name}/logprobs"],
            )
            for name in dict.fromkeys(key.rpartition("/")[0] for key in arrays)
        }
