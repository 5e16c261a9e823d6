"""The profile of a processor: everything the other rooms rely on, measured once a process.

Takes vLLM's processing info (config, tokenizer, HF processor); gives a `ProcessorProfile`. Five calls of the processor for
each modality: find the placeholder, A with other text around it, B, A and B together, and the oracle. What can't be measured
is refused here, at start-up, naming the class at fault.
"""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch

from hf_backend import __version__, versions
from hf_backend.errors import UnsupportedModelError
from hf_backend.modalities import MODALITIES, Modality
from hf_backend.placeholders.base import Replacement, Strategy
from hf_backend.placeholders.legacy import Legacy
from hf_backend.placeholders.offsets import Offsets, unmarked
from hf_backend.probe import calls
from hf_backend.probe.alone import Alone, Processed, process
from hf_backend.probe.embed_ids import declared_ids, find_embed_ids
from hf_backend.probe.frame import frame
from hf_backend.probe.oracle import Asked, check_oracle
from hf_backend.probe.pairs import layouts_of, process_two, process_two_prompts
from hf_backend.probe.parts import sampling_rate, sub_processor
from hf_backend.probe.samples import samples
from hf_backend.probe.together import find_joint
from hf_backend.probe.wraps import find_wraps
from hf_backend.records import ModalityProfile, ProcessorProfile
from hf_backend.upstream import init_logger

if TYPE_CHECKING:
    from hf_backend.records import FieldValue
    from hf_backend.upstream import BaseProcessingInfo

logger = init_logger("vllm.hf_backend")
"""Under vLLM's own logger name: only that one has a handler in a server."""

STRATEGIES: Mapping[str, Strategy] = {"offsets": Offsets(), "legacy": Legacy()}
"""All strategies by name."""

_profiles: dict[str, ProcessorProfile] = {}
_lock = threading.RLock()


def profile_of(info: "BaseProcessingInfo") -> ProcessorProfile:
    """The profile of the processor of `info` under the start-up options; measured on first use in this process.

    vLLM makes many infos and several tokenizers for a model, and with each tokenizer another HF processor; what they do is
    decided by the checkpoint and the options.
    """
    key = profile_key(info)
    with _lock:
        if key not in _profiles:
            _profiles[key] = measure(info)
        return _profiles[key]


def profile_key(info: "BaseProcessingInfo") -> str:
    """What the measurements of a processor depend on: infos with the same key share them."""
    config = info.ctx.model_config
    options = sorted(info.ctx.get_merged_mm_kwargs({}).items())
    return repr((config.model, config.revision, config.tokenizer, config.dtype, options))


def measure(info: "BaseProcessingInfo") -> ProcessorProfile:
    """Measure the processor of `info`. Raises `UnsupportedModelError` if no modality can be served."""
    processor = info.get_hf_processor()
    measured: dict[str, ModalityProfile] = {}
    refused: dict[str, str] = {}
    for modality in MODALITIES:
        if sub_processor(processor, modality) is None:
            continue
        try:
            measured[modality.name] = _measure_modality(info, modality)
        except UnsupportedModelError as error:
            refused[modality.name] = str(error)
            for other in (_nested, _headed):
                with contextlib.suppress(UnsupportedModelError):  # the reason of the usual form is the one to tell
                    measured[modality.name] = other(info, modality)
                    del refused[modality.name]
                    break
    if not measured:
        raise UnsupportedModelError(
            type(processor).__name__,
            found="; ".join(refused.values()) or "no part for any modality",
            expected=f"at least one of: {', '.join(modality.name for modality in MODALITIES)}",
            do="Set HF_BACKEND_DISABLE=1 to fall back to vLLM's own Transformers backend.",
        )
    profile = ProcessorProfile(type(processor).__name__, measured, refused)
    _say(profile)
    return profile


def _nested(info: "BaseProcessingInfo", modality: Modality) -> ModalityProfile:
    """As a processor that takes a list of items for each prompt."""
    return _measure_modality(info, dataclasses.replace(modality, nested=True))


def _headed(info: "BaseProcessingInfo", modality: Modality) -> ModalityProfile:
    """As a processor that itself puts an item in front of a prompt. It has to say so: nothing else tells what it put there."""
    return _measure_modality(info, modality, headed=True)


def _say(profile: ProcessorProfile) -> None:
    """One line a process and processor: that this package serves, and how placeholders are found."""
    served = "; ".join(
        f"{name} placeholder {one.placeholder!r} by {one.strategy}"
        f" (measured in {one.probe_calls} calls, {one.probe_seconds:.2f} s)"
        for name, one in profile.modalities.items()
    )
    logger.info(
        "hf_backend %s serves --model-impl transformers (vLLM %s, transformers %s): %s, %s.",
        __version__,
        versions.vllm_version(),
        versions.transformers_version(),
        profile.processor_class,
        served,
    )
    for name, reason in profile.refused.items():
        logger.warning("hf_backend doesn't serve %s of this model. %s", name, reason)


def _measure_modality(info: "BaseProcessingInfo", modality: Modality, headed: bool = False) -> ModalityProfile:
    started, calls_before = time.perf_counter(), calls.count()
    tokenizer = info.get_tokenizer()
    item_a, item_b = samples(modality.name, sampling_rate(info.get_hf_processor()))
    strategy, placeholder, alone_a, replaced_a = _find_placeholder(info, modality, item_a, headed)

    moved = process(info, modality, strategy, f"some text {placeholder} around it", [item_a], {})
    # A field that changes with the text around an item follows the text, whatever it is called.
    text_fields = frozenset(name for name in alone_a.fields if not _same(alone_a.fields[name], moved.fields.get(name)))

    alone_b = process(info, modality, strategy, placeholder, [item_b], {})
    replaced_b = strategy.read(alone_b.output, alone_b.ids, placeholder, modality.name, tokenizer)
    both, pair = None, alone_b
    if not headed:
        both, pair = process_two(info, modality, strategy, placeholder, item_a, item_b, alone_a, alone_b)

    order = [(item_a, replaced_a.ids)]
    if both is not None:
        second = (item_b, replaced_b.ids) if pair is alone_b and replaced_b is not None else order[0]
        order += [second, order[0]]
    target = tokenizer.encode(replaced_a.placeholder, add_special_tokens=False)
    if headed:
        target = unmarked(target, tokenizer)
    asked = Asked(info, modality, strategy, replaced_a.placeholder if headed else placeholder, target, headed)
    try:
        splicing = check_oracle(asked, order)
    except UnsupportedModelError as error:
        # SmolVLM counts every video's frames by the longest of the prompt, so that no mix of lengths can be spliced. What holds
        # for equal items holds for each alone, and an item is what it is alone (C1).
        try:
            splicing = check_oracle(asked, [order[0]] * len(order))
        except UnsupportedModelError:
            raise error from None

    embed_ids = find_embed_ids(info, modality, replaced_a.ids)
    joined = both or process_two_prompts(info, modality, strategy, placeholder, item_a, item_b)
    try:
        layouts = layouts_of(info, alone_a, pair, joined, text_fields)
    except UnsupportedModelError:
        if both is not None:
            raise
        # Two prompts needn't be what two items of one would be: a clip each may be padded to another length. One item a call, then.
        joined, layouts = None, layouts_of(info, alone_a, pair, None, text_fields)
    joint = None
    if both is not None and pair is alone_b and replaced_b is not None:
        alone = Alone(info, modality, strategy, placeholder, embed_ids, text_fields)
        probes = [(item_a, alone_a, replaced_a), (item_b, alone_b, replaced_b)]
        joint = find_joint(alone, layouts, probes)
    around = frame(
        [replaced.ids for replaced in (replaced_a, replaced_b) if replaced is not None], embed_ids, tokenizer
    )
    return ModalityProfile(
        modality=modality.name,
        placeholder=asked.placeholder,
        headed=headed,
        target_ids=tuple(target),
        strategy=strategy.name,
        embed_ids=embed_ids,
        layouts=layouts,
        text_fields=text_fields,
        joinable=joined is not None,
        several=both is not None,
        splicing=splicing,
        frame=around,
        nested=modality.nested,
        joint=joint,
        # Where tokens at edges are shared with what they touch, that is all there is to it.
        wraps=None
        if headed or splicing.touching is not None
        else find_wraps(asked, item_a, replaced_a.ids, around, splicing.edit),
        probe_calls=calls.count() - calls_before,
        probe_seconds=time.perf_counter() - started,
    )


def candidates(processor: Any, modality: Modality) -> Iterator[str]:
    """Texts that may stand for one item, likeliest first."""
    tokens = [getattr(processor, name, None) for name in modality.placeholder_attributes]
    texts = [str(token) for token in tokens if token is not None and str(token)]
    yield from texts
    for start_name, end_name in modality.wrapping_attributes:
        start, end = getattr(processor, start_name, None), getattr(processor, end_name, None)
        if start is not None and end is not None:
            yield from (f"{start}{text}{end}" for text in texts)


def _find_placeholder(
    info: "BaseProcessingInfo", modality: Modality, item: object, headed: bool
) -> tuple[Strategy, str, Processed, Replacement]:
    """The first strategy and placeholder with which the processor is seen to replace one piece of text for one item.

    A replacement has to hold one of the model's own placeholder tokens: with a text that the processor doesn't know, some
    replace nothing and process the item all the same.
    """
    processor, tokenizer = info.get_hf_processor(), info.get_tokenizer()
    preferred = versions.preferred_strategy()
    strategies = sorted(STRATEGIES.values(), key=lambda strategy: strategy.name != preferred)
    tried: list[str] = []
    for strategy in (STRATEGIES["offsets"],) if headed else strategies:
        for text in [""] if headed else dict.fromkeys(candidates(processor, modality)):
            try:
                processed = process(info, modality, strategy, text, [item], {})
            except ValueError as error:
                cause = error.__cause__ or error
                tried.append(f"{text!r} by {strategy.name}: {type(cause).__name__} {cause}")
                continue
            replacement = strategy.read(processed.output, processed.ids, text, modality.name, tokenizer)
            if replacement is None:
                tried.append(f"{text!r} by {strategy.name}: no single replacement to be seen")
            elif not any(token in replacement.ids for _, token in declared_ids(info, modality)):
                tried.append(f"{text!r} by {strategy.name}: an expansion without a placeholder token of the model")
            else:
                return strategy, text, processed, replacement
    raise UnsupportedModelError(
        type(processor).__name__,
        found="; ".join(tried) or f"no {' or '.join(modality.placeholder_attributes)} attribute",
        expected=f"a text that it replaces once for one {modality.name}",
        do=f"It can't be served with {modality.name} items.",
    )


def _same(value: "FieldValue", other: "FieldValue | None") -> bool:
    """Whether two values of a field are equal: form, shape, dtype and contents."""
    if isinstance(value, torch.Tensor) and isinstance(other, torch.Tensor):
        return value.shape == other.shape and value.dtype == other.dtype and torch.equal(value, other)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(_same(a, b) for a, b in zip(value, other, strict=True))
    return False
