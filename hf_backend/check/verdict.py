"""From what the steps found to a table and to every "no", each with whose fault it is and what to do.

Takes the steps' answers as JSON types; gives rows and `No`s. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hf_backend.check import blame
from hf_backend.check.cases import TOGETHER
from hf_backend.check.compare import APART

UNITS = {"image": "pixels", "video": "pixels and frames", "audio": "seconds"}

COMPILED = 1e-4
"""Largest difference of a compiled encoder from an eager one (C10), relative to the largest embedding."""

Rows = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class No:
    """One thing that isn't as it should be."""

    subject: str
    text: str
    whose: str
    do: str
    certain: bool = True
    """False where a step could not tell."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What each step said; None where it wasn't asked."""

    folder: Mapping[str, Any] | None = None
    processor: Mapping[str, Any] | None = None
    reference: Mapping[str, Any] | None = None
    engine: Mapping[str, Any] | None = None


def exit_status(nos: Sequence[No]) -> int:
    """0: served and right as far as asked. 1: something is not. 2: could not tell."""
    if any(no.certain for no in nos):
        return 1
    return 2 if nos else 0


def nos(steps: Steps) -> list[No]:
    """Everything that isn't as it should be, in the order of the steps."""
    return list(_nos(steps))


def _nos(steps: Steps) -> Iterator[No]:
    for name in ("folder", "processor", "reference", "engine"):
        said = getattr(steps, name)
        if said is not None and "error" in said:
            # Without a tiny model of its kind nothing is known of the model itself.
            certain = name != "reference" and not said.get("unanswered")
            yield No(name, said["error"], said.get("whose", blame.UNKNOWN), said.get("do", ""), certain)
    if steps.processor is not None and "error" not in steps.processor:
        yield from _processor_nos(steps.processor)
    if steps.engine is not None and "error" not in steps.engine:
        yield from _engine_nos(steps.engine)


def _processor_nos(said: Mapping[str, Any]) -> Iterator[No]:
    for name, reason in said["refused"].items():
        yield No(name, reason, blame.PROCESSOR, "Serve the model's other modalities; report the processor.")
    for name, one in said["modalities"].items():
        if not one["independent"]:
            yield No(
                f"{name}, C1",
                "the same item processed twice gave other fields, so it can't be kept in vLLM's processor cache",
                blame.PROCESSOR,
                "Switch its random augmentation off, or serve with --mm-processor-cache-gb 0.",
            )


def _engine_nos(said: Mapping[str, Any]) -> Iterator[No]:
    if not said["class"].startswith("hf_backend."):
        yield No("class", f"{said['class']} serves", blame.MACHINE, "`hf-backend doctor` says why.")
    for text in said["attention"]["ignored"]:
        yield No(
            "attention",
            f"{text}: answers to prompts with items are wrong here",
            blame.VLLM,
            "Serve it where another attention backend supports it (on a GPU: FLEX_ATTENTION, TRITON_ATTN).",
        )
    for name, one in said["encoders"].items():
        if one["apart"] > APART:
            yield No(
                f"{name}, C9",
                f"items encoded together differ from each alone by {one['apart']:.1e} of the largest embedding",
                blame.OURS,
                "Please report it with this output.",
            )
        if (told := one["compiled"]) is not None and (told["failed"] or (told["difference"] or 0.0) > COMPILED):
            yield No(
                f"{name}, C10",
                f"compiled, its encoder differs from eager: {_compiled(told)}",
                blame.OURS,
                "Serve it without compile_mm_encoder, and please report it with this output.",
            )
    parity = said.get("parity")
    if parity is not None:
        for name in said["encoders"]:
            if not any(name in asked and one["difference"] is not None for asked, one in parity.items()):
                yield No(
                    f"parity: {name}",
                    f"transformers gives no answer to any prompt with {name} items, so there is nothing to compare with",
                    blame.MODEL,
                    "The rows under `parity` say why; try another transformers release.",
                    certain=False,
                )
    ignored = said["attention"]["ignored"]
    for name, one in (parity or {}).items():
        alone = name.removesuffix(TOGETHER)
        if one["right"] or (alone != name and not (parity or {})[alone]["right"]):
            continue  # what is wrong alone isn't told again
        subject, text = f"parity: {name}", one["wrong"]
        if ignored:
            yield No(subject, text, blame.VLLM, "It follows from the attention above.")
        else:
            do = "Please report it with this output; until it is mended, don't rely on answers of this kind."
            yield No(subject, text, blame.OURS, do)


def rows(model: str, steps: Steps) -> Rows:
    """The table, as names and texts."""
    yield "model", model
    processor, reference, engine = steps.processor, steps.reference, steps.engine
    if processor is None or "error" in processor:
        return
    yield "architecture", f"{', '.join(processor['architectures'])}, at most {processor['max_model_len']} tokens"
    yield "processor", processor["processor"]
    if reference is not None and "tiny" in reference:
        million = reference["tiny"]["parameters"] / 1e6
        yield "tiny model", f"random, {million:.1f} million parameters; taken away: {reference['tiny']['how']}"
    running = engine is not None and "error" not in engine
    if engine is not None and running:
        yield "served by", f"{engine['class']} with {engine['model']}"
        yield "attention", ", ".join(engine["attention"]["backends"]) or "no attention layer seen"
        grown = f"{engine['start_memory_mb']} MB more at most"
        yield "start-up", f"{engine['start_seconds']:.1f} s for the engine with this model, {grown}"
    for name, one in processor["modalities"].items():
        yield from _modality_rows(name, one, processor, engine["encoders"].get(name) if engine and running else None)
    for name, reason in processor["refused"].items():
        yield name, f"NOT SERVED: {reason}"
    if engine is not None and running and "parity" in engine:
        yield from _parity_rows(engine["parity"], (reference or {}).get("refused", {}))


def _modality_rows(
    name: str, one: Mapping[str, Any], whole: Mapping[str, Any], encoder: Mapping[str, Any] | None
) -> Rows:
    yield name, f"served; placeholder {one['placeholder']!r}, by {one['strategy']}, which met the oracle"
    yield (
        "",
        f"embeddings replace ids {one['embed_ids']}" + ("; merges text at its edges" if one["merges_text"] else ""),
    )
    for field, layout in one["layouts"].items():
        padded = "" if layout["exact"] else ", padded by the processor (here it is not)"
        where = f" along dimension {layout['dim']}{padded}" if layout["joining"] == "concatenated" else ""
        yield "", f"field {field}: {layout['joining']}{where}"
    sizes = [
        f"{_size(told['size'])}: {told['refused'] if 'refused' in told else told['embeddings']}"
        for told in one["typical"]
    ]
    yield "", f"embeddings by size ({UNITS[name]}): {', '.join(sizes)}"
    largest = one["largest"]
    size = list(largest["size"])
    if name == "audio":
        size = [size[0] / whole["sampling_rate"]]
    memory = largest["embeddings"] * whole["hidden_size"] * 2 / 2**20
    yield (
        "",
        f"largest that fits: {_size(size)} {UNITS[name]}, {largest['embeddings']} embeddings in {largest['tokens']} tokens;"
        f" {one['largest_seconds']:.2f} s in the processor, {one['largest_bytes'] / 2**20:.1f} MB of fields,"
        f" {memory:.1f} MB of 16-bit embeddings",
    )
    calls = f"{one['probe_calls']} processor calls, {one['probe_seconds']:.2f} s"
    yield "", f"independent of neighbours (C1): {_yes(one['independent'])}; measured at each start in {calls}"
    if encoder is None:
        return
    yield "", f"encoder: {encoder['way']}; several items a call: {_yes(encoder['joinable'])}"
    apart = f"{encoder['apart']:.0e} of the largest embedding between alone and together"
    yield "", f"items stay apart in it (C9): {_yes(encoder['apart'] <= APART)}, {apart}"
    yield "", f"compile (C10): {_compiled(encoder['compiled'])}"
    took = f"{encoder['largest_seconds']:.2f} s, {encoder['largest_memory_mb']} MB more"
    yield "", f"profiling's largest item in this encoder: {took}"


def _compiled(told: Mapping[str, Any] | None) -> str:
    if told is None:
        return "not asked (--compile)"
    if not told["modules"]:
        return "stays eager: nothing in it compiles whole"
    what = f"{', '.join(told['kinds'])}: {told['modules']} modules, {told['graphs']} graphs"
    if told["failed"] is not None:
        return f"NO, {what}; {told['failed']}"
    same = f"{told['difference']:.0e} of the largest embedding from eager on sizes it never saw"
    return f"{_yes(told['difference'] <= COMPILED)}, {what}; {same}; {told['speed']:g} times as fast as eager"


def _parity_rows(parity: Mapping[str, Any], refused: Mapping[str, str]) -> Rows:
    right = sum(one["right"] for one in parity.values())
    differences = [one["difference"] for one in parity.values() if one["difference"] is not None]
    largest = f", largest difference of a log-probability {max(differences):.0e}" if differences else ""
    yield (
        "parity",
        f"{right} of {len(parity)} answers are those of transformers' generate, alone and in a batch{largest}",
    )
    for name, reason in refused.items():
        yield "", f"not asked: {name}: transformers refuses it: {reason[:160]}"


def _size(size: Sequence[float]) -> str:
    return " x ".join(f"{side:g}" for side in size)


def _yes(value: bool | None) -> str:
    return "not known" if value is None else "yes" if value else "NO"


def conclusion(found: Sequence[No], *, parity: bool) -> Iterator[str]:
    """Every "no", or that all is fine."""
    for no in found:
        head = "NO" if no.certain else "COULD NOT TELL"
        yield f"{head} ({no.subject}): {no.text}"
        yield f"    whose: {no.whose}. {no.do}"
    if not found:
        rest = "" if parity else " Answers weren't compared: add --parity."
        yield f"Fine: hf_backend serves this model under --model-impl transformers.{rest}"
