"""What transformers answers: greedy `generate` in float32, with the log-probabilities of the whole vocabulary.

Takes a family and cases; gives an `Answer` a request, kept on disk. Not for vLLM, which must not be imported before
this ran: it registers configs of its own over those of transformers.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from compat.parity import items
from compat.parity.cases import Case, Clip, Request
from compat.parity.media import REFUSED
from compat.zoo import Spec, checkpoint, spec
from compat.zoo.untyped import transformers
from hf_backend.check.compare import Answer
from hf_backend.check.reference import greedy

NUM_TOKENS = 14
"""Length of an answer; the same for the engine."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """That transformers does not take a request, as `compat.parity.media.REFUSED` says of its family."""

    message: str


def load_class(family: str) -> Any:
    """The class in transformers that answers from the family's checkpoint."""
    return getattr(transformers, spec(family).answers_class or spec(family).model_class)


def prompt_text(family: Spec, request: Request) -> str:
    """The unexpanded prompt of `request` in the words of `family`."""
    return family.prompt(
        [
            part if isinstance(part, str) else family.placeholders[part.modality]
            for part in request.parts
            if request.woven is None or not isinstance(part, Clip)
        ]
    )


def ask(
    family: str,
    requests: Iterable[Request],
    folder: Path | None = None,
    prepare: Callable[[Any], object] = lambda model: None,
) -> dict[Request, Answer | Refusal]:
    """Load the checkpoint of `family`, or that in `folder`, and answer each request on its own. Requests must be distinct by
    content; `prepare` is given the model before the first.

    A refusal by the processor that is not in the table of refusals is passed on.
    """
    import torch

    folder = folder or checkpoint(family)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    # transformers chooses the attention: sdpa where the model can, eager for GOT-OCR 2. Only sdpa leaves out the cap on
    # attention logits that a config asks for (PaliGemma 2): measured, 0.002 in log-probabilities.
    config = transformers.AutoConfig.from_pretrained(folder)
    capped = getattr(config.get_text_config(), "attn_logit_softcapping", None) is not None
    model = load_class(family).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager" if capped else None
    )
    model.eval()
    prepare(model)
    answers: dict[Request, Answer | Refusal] = {}
    rate = items.sampling_rate(folder)
    for request in requests:
        # Llama 4's processor gives bfloat16 whatever the model is; every engine casts to the model's own.
        try:
            inputs = prepare_inputs(processor, spec(family), request, rate).to(torch.float32)
        except ValueError as error:
            if family not in REFUSED or REFUSED[family] not in str(error):
                raise
            answers[request] = Refusal(str(error))
            continue
        options = {} if request.woven is None else {request.woven: True}
        answers[request] = greedy(model, inputs, max_new_tokens=NUM_TOKENS, **options)
    return answers


def prepare_inputs(processor: Any, family: Spec, request: Request, rate: int) -> Any:
    """The HF processor's output for `request`, as tensors with a batch dimension of one; clips at `rate` Hz."""
    arguments = items.processor_arguments(processor, family.name, request, rate)
    if request.woven is not None:
        arguments[request.woven] = True
    return processor(text=[prompt_text(family, request)], return_tensors="pt", **arguments)


def reference(family: str, cases: Iterable[Case]) -> dict[Request, Answer | Refusal]:
    """The answers to all requests of `cases`, from disk if they were computed before."""
    requests = list(dict.fromkeys(request for case in cases for request in case.requests()))
    place = _place(family, requests)
    if place.exists():
        return _load(place, requests)
    answers = ask(family, requests)
    _save(place, [answers[request] for request in requests])
    return answers


def _place(family: str, requests: Iterable[Request]) -> Path:
    # The checkpoint's folder stands for the zoo and transformers; what else makes an answer is torch and these files.
    sources = [Path(str(file)).read_text() for file in (__file__, items.__file__)]
    asked = repr((list(requests), metadata.version("torch"), sources))
    name = f"{family}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}.npz"
    return checkpoint(family).parent / "reference" / name


def _save(place: Path, answers: Iterable[Answer | Refusal]) -> None:
    import numpy as np

    arrays: dict[str, Any] = {}
    for number, answer in enumerate(answers):
        if isinstance(answer, Refusal):
            arrays[f"{number}.refusal"] = np.array(answer.message)
            continue
        arrays[f"{number}.prompt_ids"] = np.array(answer.prompt_ids)
        arrays[f"{number}.tokens"] = np.array(answer.tokens)
        arrays[f"{number}.logprobs"] = answer.logprobs
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(suffix=".npz", dir=place.parent)
    os.close(handle)
    np.savez(made, **arrays)
    os.replace(made, place)


def _load(place: Path, requests: list[Request]) -> dict[Request, Answer | Refusal]:
    import numpy as np

    with np.load(place) as arrays:
        return {
            request: Refusal(str(arrays[f"{number}.refusal"]))
            if f"{number}.refusal" in arrays
            else Answer(
                prompt_ids=tuple(arrays[f"{number}.prompt_ids"].tolist()),
                tokens=tuple(arrays[f"{number}.tokens"].tolist()),
                logprobs=arrays[f"{number}.logprobs"],
            )
            for number, request in enumerate(requests)
        }


def summary(found: Mapping[Request, Answer | Refusal]) -> str:
    """A JSON line on the answers: how many, and how many different tokens they hold."""
    answers = [answer for answer in found.values() if isinstance(answer, Answer)]
    return json.dumps(
        {
            "requests": len(found),
            "refused": len(found) - len(answers),
            "different_tokens": len({token for answer in answers for token in answer.tokens}),
            "longest_prompt": max((len(answer.prompt_ids) for answer in answers), default=0),
        }
    )
