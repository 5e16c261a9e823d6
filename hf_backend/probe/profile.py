"""The profile of a processor: everything the other rooms rely on, measured once a process.

Takes vLLM's processing info (config, tokenizer, HF processor); gives a `ProcessorProfile`. Five calls of the processor
for each modality: find the placeholder, A with other text around it, B, A and B together, and the oracle. What can't be
measured is refused here, at start-up, naming the class at fault.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from hf_backend import __version__, versions
from hf_backend.errors import UnsupportedModelError
from hf_backend.modalities import MODALITIES, Modality
from hf_backend.placeholders.base import Strategy
from hf_backend.placeholders.offsets import Offsets
from hf_backend.placeholders.splice import find_targets, splice
from hf_backend.probe import calls
from hf_backend.probe.alone import Processed, process
from hf_backend.probe.layout import layout_of
from hf_backend.probe.samples import SAMPLES
from hf_backend.records import FieldLayout, ModalityProfile, ProcessorProfile
from hf_backend.upstream import init_logger

if TYPE_CHECKING:
    from hf_backend.records import FieldValue
    from hf_backend.upstream import BaseProcessingInfo

logger = init_logger("vllm.hf_backend")
"""Under vLLM's own logger name: only that one has a handler in a server."""

STRATEGIES: Mapping[str, Strategy] = {"offsets": Offsets()}
"""All strategies by name, the one to try first standing first."""

_profiles: dict[str, ProcessorProfile] = {}
_lock = threading.RLock()


def profile_of(info: "BaseProcessingInfo") -> ProcessorProfile:
    """The profile of the processor of `info` under the start-up options; measured on first use in this process.

    vLLM makes many infos and several tokenizers for a model, and with each tokenizer another HF processor; what they do is
    decided by the checkpoint and the options.
    """
    config = info.ctx.model_config
    key = repr(
        (
            config.model,
            config.revision,
            config.tokenizer,
            config.dtype,
            sorted(info.ctx.get_merged_mm_kwargs({}).items()),
        )
    )
    with _lock:
        if key not in _profiles:
            _profiles[key] = measure(info)
        return _profiles[key]


def measure(info: "BaseProcessingInfo") -> ProcessorProfile:
    """Measure the processor of `info`. Raises `UnsupportedModelError` if no modality can be served."""
    processor = info.get_hf_processor()
    measured: dict[str, ModalityProfile] = {}
    refused: dict[str, str] = {}
    for modality in MODALITIES:
        if all(getattr(processor, name, None) is None for name in modality.sub_processors):
            continue
        try:
            measured[modality.name] = _measure_modality(info, modality)
        except UnsupportedModelError as error:
            refused[modality.name] = str(error)
    if not measured:
        raise UnsupportedModelError(
            type(processor).__name__,
            found="; ".join(refused.values()) or "no part for any modality this version serves",
            expected=f"at least one of: {', '.join(modality.name for modality in MODALITIES)}",
            do="Set HF_BACKEND_DISABLE=1 to fall back to vLLM's own Transformers backend.",
        )
    _say(type(processor).__name__, measured, refused)
    return ProcessorProfile(type(processor).__name__, measured, refused)


def _say(processor_class: str, measured: Mapping[str, ModalityProfile], refused: Mapping[str, str]) -> None:
    """One line a process and processor: that this package serves, and how placeholders are found."""
    served = "; ".join(
        f"{name} placeholder {profile.placeholder!r} by {profile.strategy}"
        f" (measured in {profile.probe_calls} calls, {profile.probe_seconds:.2f} s)"
        for name, profile in measured.items()
    )
    logger.info(
        "hf_backend %s serves --model-impl transformers (vLLM %s, transformers %s): %s, %s.",
        __version__,
        versions.vllm_version(),
        versions.transformers_version(),
        processor_class,
        served,
    )
    for name, reason in refused.items():
        logger.warning("hf_backend doesn't serve %s of this model. %s", name, reason)


def _measure_modality(info: "BaseProcessingInfo", modality: Modality) -> ModalityProfile:
    started, calls_before = time.perf_counter(), calls.count()
    item_a, item_b = SAMPLES[modality.name]()
    strategy, placeholder, alone_a = _find_placeholder(info, modality, item_a)
    (replacement,) = alone_a.replacements

    moved = process(info, modality, strategy, f"some text {placeholder} around it", [item_a], {})
    alone_b = process(info, modality, strategy, placeholder, [item_b], {})
    # A field that changes with the text around an item follows the text, whatever it is called.
    text_fields = frozenset(name for name in alone_a.fields if not _same(alone_a.fields[name], moved.fields.get(name)))

    both = _process_both(info, modality, strategy, placeholder, [item_a, item_b])
    layouts = {} if both is None else _layouts(info, alone_a, alone_b, both, text_fields)

    order = [(item_a, replacement.ids)]
    if both is not None and alone_b.replacements:
        order += [(item_b, alone_b.replacements[0].ids), (item_a, replacement.ids)]
    _check_oracle(info, modality, strategy, placeholder, replacement.placeholder, order)
    return ModalityProfile(
        modality=modality.name,
        placeholder=placeholder,
        target_ids=tuple(info.get_tokenizer().encode(replacement.placeholder, add_special_tokens=False)),
        strategy=strategy.name,
        embed_ids=_find_embed_ids(info, modality, replacement.ids),
        layouts=layouts,
        text_fields=text_fields,
        joinable=both is not None,
        probe_calls=calls.count() - calls_before,
        probe_seconds=time.perf_counter() - started,
    )


def _candidates(processor: Any, modality: Modality) -> Iterator[str]:
    """Texts that may stand for one item, likeliest first."""
    tokens = [getattr(processor, name, None) for name in modality.placeholder_attributes]
    texts = [token for token in tokens if isinstance(token, str) and token]
    yield from texts
    for start_name, end_name in modality.wrapping_attributes:
        start, end = getattr(processor, start_name, None), getattr(processor, end_name, None)
        if isinstance(start, str) and isinstance(end, str):
            yield from (f"{start}{text}{end}" for text in texts)


def _find_placeholder(info: "BaseProcessingInfo", modality: Modality, item: object) -> tuple[Strategy, str, Processed]:
    """The first strategy and placeholder with which the processor replaces exactly one piece of text for one item."""
    processor = info.get_hf_processor()
    tried: list[str] = []
    for strategy in STRATEGIES.values():
        for text in dict.fromkeys(_candidates(processor, modality)):
            try:
                processed = process(info, modality, strategy, text, [item], {})
            except ValueError as error:
                tried.append(
                    f"{text!r} by {strategy.name}: {type(error.__cause__ or error).__name__} {error.__cause__ or error}"
                )
                continue
            if len(processed.replacements) == 1:
                return strategy, text, processed
            tried.append(f"{text!r} by {strategy.name}: {len(processed.replacements)} replacements reported")
    raise UnsupportedModelError(
        type(processor).__name__,
        found="; ".join(tried) or f"no {' or '.join(modality.placeholder_attributes)} attribute",
        expected=f"a text that it replaces once for one {modality.name} and reports in text_replacement_offsets",
        do="The legacy search for processors that report no offsets is not part of this version.",
    )


def _same(value: "FieldValue", other: "FieldValue | None") -> bool:
    """Whether two values of a field are equal: form, shape, dtype and contents."""
    if isinstance(value, torch.Tensor) and isinstance(other, torch.Tensor):
        return value.shape == other.shape and value.dtype == other.dtype and torch.equal(value, other)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(_same(a, b) for a, b in zip(value, other, strict=True))
    return False


def _process_both(
    info: "BaseProcessingInfo", modality: Modality, strategy: Strategy, placeholder: str, items: Sequence[object]
) -> Processed | None:
    """Both items in one call, or None where the processor takes one item a prompt only (Fuyu)."""
    try:
        return process(info, modality, strategy, f"{placeholder} and {placeholder}", items, {})
    except ValueError:
        return None


def _layouts(
    info: "BaseProcessingInfo", a: Processed, b: Processed, both: Processed, text_fields: frozenset[str]
) -> dict[str, FieldLayout]:
    layouts: dict[str, FieldLayout] = {}
    for name in a.fields.keys() - text_fields:
        layout = None
        if name in b.fields and name in both.fields:
            layout = layout_of(a.fields[name], b.fields[name], both.fields[name])
        if layout is None:
            shapes = [_shape(processed.fields.get(name)) for processed in (a, b, both)]
            raise UnsupportedModelError(
                type(info.get_hf_processor()).__name__,
                found=f"`{name}` of {shapes[0]} for one item, {shapes[1]} for another and {shapes[2]} for both",
                expected="one dimension in which sizes add up, or the same value every time",
                do="Items of this processor can't be told apart, so the model can't be served.",
            )
        layouts[name] = layout
    return layouts


def _shape(value: Any) -> str:
    if value is None:
        return "nothing"
    shape = getattr(value, "shape", None)
    return f"a list of {len(value)}" if shape is None else f"shape {tuple(shape)}"


def _find_embed_ids(info: "BaseProcessingInfo", modality: Modality, expansion: Sequence[int]) -> frozenset[int]:
    """The model's own placeholder id: the config's first, because that is the one the HF model looks for, then the
    processor's. Never the most repeated id: a tile of one embedding between two separators has more separators."""
    config, processor = info.get_hf_config(), info.get_hf_processor()
    seen: list[str] = []
    for source in (config, processor):
        for name in modality.token_id_attributes:
            token_id = getattr(source, name, None)
            if isinstance(token_id, int):
                if token_id in expansion:
                    return frozenset({token_id})
                seen.append(f"{type(source).__name__}.{name}={token_id}")
    raise UnsupportedModelError(
        type(processor).__name__,
        found=f"an expansion of {len(expansion)} tokens holding none of the placeholder ids ({', '.join(seen) or 'none declared'})",
        expected=f"the id of the model's {modality.name} token in it",
        do=f"Set one of {', '.join(modality.token_id_attributes)} in the model's config to the token its processor writes.",
    )


def _check_oracle(
    info: "BaseProcessingInfo",
    modality: Modality,
    strategy: Strategy,
    placeholder: str,
    replaced: str,
    order: Sequence[tuple[object, Sequence[int]]],
) -> None:
    """Splicing the expansions of items processed alone into the unexpanded prompt must equal HF's own expanded ids.

    `order` holds items with their expansions. Between the first two is text, the others touch (C6), and a newline follows.
    """
    tokenizer = info.get_tokenizer()
    text = f"first {placeholder} then" + placeholder * (len(order) - 1) + "\nlast."
    expected = process(info, modality, strategy, text, [item for item, _ in order], {}).input_ids
    target = tokenizer.encode(replaced, add_special_tokens=False)
    expansions = {modality.name: [expansion for _, expansion in order]}
    spliced: list[int] = []
    for special in (True, False):
        prompt = tokenizer.encode(text, add_special_tokens=special)
        found = find_targets(prompt, {modality.name: target})
        if len(found) == len(order):
            spliced, _ = splice(prompt, found, expansions)
            if spliced == expected:
                return
    raise UnsupportedModelError(
        type(info.get_hf_processor()).__name__,
        found=f"{len(expected)} ids from the processor and {len(spliced)} from splicing the items' own expansions"
        f" ({strategy.name})",
        expected="equal ids",
        do="The processor edits the prompt beyond its placeholders, or the tokenizer merges text at their edges; neither"
        " is supported by this version.",
    )
