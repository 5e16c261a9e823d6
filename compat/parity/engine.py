"""What a vLLM engine answers, with the peer asked for.

Takes a family, cases and a peer; gives an `EngineRun`: the answers round by round, whose model class it was, and how
often each round called the HF processor. Runs in the calling process, so give it a process of its own
(`compat.parity.children`).
"""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

from compat.parity import items
from compat.parity.cases import Case, Request
from compat.parity.reference import NUM_TOKENS, prompt_text
from compat.zoo import Spec, checkpoint, spec
from hf_backend.check.compare import EngineAnswer

if TYPE_CHECKING:
    from vllm import LLM

OURS, IN_TREE, NATIVE = "ours", "in-tree", "native"
PEERS = (OURS, IN_TREE, NATIVE)
"""Our backend, vLLM's own Transformers backend, vLLM's native class."""

DISABLE_VARIABLE = "HF_BACKEND_DISABLE"
"""Switches our plug-in off."""
MAX_ITEMS = {"image": 4, "video": 2, "audio": 2}
"""Items a prompt; what the cases need, since an engine measures its memory with so many."""
MAX_LENGTH = 2048


@dataclass(frozen=True, slots=True)
class Round:
    """What came of the requests of one round."""

    answers: tuple[EngineAnswer, ...]
    processor_calls: int | None
    """Calls of the HF processor in the round; None where nobody counts (other peers)."""


@dataclass(frozen=True, slots=True)
class EngineRun:
    """What came of one family on one peer."""

    rounds: dict[str, tuple[Round, ...]]
    """Case name to its rounds."""
    model_class: str
    """Module and name of the class that served."""
    compiled_modules: int
    """How many modules of its encoders are compiled (`compile_mm_encoder`, ours)."""
    start_seconds: float


def choose_peer(peer: str) -> None:
    """Switch our plug-in on or off for this process; before an engine is made. `ValueError` for an unknown peer."""
    if peer not in PEERS:
        raise ValueError(f"peer: found {peer!r}; expected one of {', '.join(PEERS)}. See `python -m compat.parity -h`.")
    if peer != OURS:
        os.environ[DISABLE_VARIABLE] = "1"
        return
    os.environ.pop(DISABLE_VARIABLE, None)
    if not any(entry.value.startswith("hf_backend") for entry in metadata.entry_points(group="vllm.general_plugins")):
        # Not installed, only on the path: do what vLLM would do on finding the entry point.
        from hf_backend.plugin import register

        register()


def run(family: str, cases: Iterable[Case], peer: str, **engine_arguments: Any) -> EngineRun:
    """Start an engine on the checkpoint of `family` and ask the cases one after the other.

    `engine_arguments` go to `LLM` over the defaults here. Errors of the engine are passed on.
    """
    begun = time.perf_counter()
    llm = start(family, peer, **engine_arguments)
    started = time.perf_counter() - begun
    rate = items.sampling_rate(checkpoint(family))
    rounds = {
        case.name: tuple(ask_together(llm, spec(family), requests, peer, rate) for requests in case.rounds)
        for case in cases
    }
    (model_class,) = llm.apply_model(_class_name)
    (compiled,) = llm.apply_model(_compiled_modules)
    return EngineRun(rounds, model_class, compiled, started)


def start(family: str, peer: str, **engine_arguments: Any) -> "LLM":
    """An engine on the checkpoint of `family`, float32 and eager; `engine_arguments` go to `LLM` over the defaults here."""
    choose_peer(peer)
    from vllm import LLM

    return LLM(
        **{
            "model": str(checkpoint(family)),
            "model_impl": "vllm" if peer == NATIVE else "transformers",
            "dtype": "float32",
            "enforce_eager": True,
            # Nothing else: a family may say that it takes what transformers' own code of it can't run (Kimi K2.5's videos).
            "limit_mm_per_prompt": {
                name: most * (name in spec(family).placeholders) for name, most in MAX_ITEMS.items()
            },
            "max_model_len": MAX_LENGTH,
            "max_num_seqs": 8,
            "seed": 0,
            "disable_log_stats": True,
            **engine_arguments,
        }
    )


def _compiled_modules(model: Any) -> int:
    from hf_backend.encoding.compile import CompiledCall

    return sum(isinstance(module.forward, CompiledCall) for module in model.modules())


def _class_name(model: Any) -> str:
    return f"{type(model).__module__}.{type(model).__name__}"


def ask_together(llm: "LLM", family: Spec, requests: Sequence[Request], peer: str, rate: int) -> Round:
    """What `llm` answers to requests that it is given at once; clips are at `rate` Hz."""
    from vllm import SamplingParams

    parameters = SamplingParams(temperature=0.0, max_tokens=NUM_TOKENS, logprobs=5, ignore_eos=True, detokenize=False)
    prompts: list[Any] = [_prompt(llm, family, request, rate) for request in requests]
    before = _processor_calls(peer)
    outputs = llm.generate(prompts, parameters, use_tqdm=False)
    after = _processor_calls(peer)
    answers = tuple(
        EngineAnswer(
            prompt_ids=tuple(output.prompt_token_ids or ()),
            tokens=tuple(output.outputs[0].token_ids),
            logprobs=tuple(
                {token: entry.logprob for token, entry in step.items()} for step in output.outputs[0].logprobs or ()
            ),
            cached_tokens=output.num_cached_tokens or 0,
        )
        for output in outputs
    )
    return Round(answers, None if before is None or after is None else after - before)


def _prompt(llm: "LLM", family: Spec, request: Request, rate: int) -> dict[str, Any]:
    text = prompt_text(family, request)
    prompt: dict[str, Any] = (
        {"prompt_token_ids": llm.get_tokenizer().encode(text)} if request.as_ids else {"prompt": text}
    )
    if request.items:
        prompt["multi_modal_data"] = items.multi_modal_data(request, rate)
    if request.woven is not None:
        prompt["mm_processor_kwargs"] = {request.woven: True}
    return prompt


def _processor_calls(peer: str) -> int | None:
    if peer != OURS:
        return None
    from hf_backend.probe import calls

    return int(calls.count())
