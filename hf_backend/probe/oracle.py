"""The oracle: splicing the expansions of items processed alone into the unexpanded prompt must equal HF's own ids.

Takes a modality's placeholder and items with their expansions; gives the way of splicing that meets it, or raises. Also says
which tokens are text that a tokenizer may merge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hf_backend import versions
from hf_backend.errors import UnsupportedModelError
from hf_backend.modalities import Modality
from hf_backend.placeholders.base import Strategy
from hf_backend.placeholders.edits import apply_edit, headed, read_edit
from hf_backend.placeholders.seams import IsText, core_span, splice_merging
from hf_backend.placeholders.splice import find_targets, splice
from hf_backend.placeholders.touching import NOT_SPACED, splice_touching
from hf_backend.probe.alone import process
from hf_backend.records import PromptEdit, Splicing, TouchRule

if TYPE_CHECKING:
    from hf_backend.upstream import BaseProcessingInfo


def is_text_of(tokenizer: Any) -> IsText:
    """Whether a token is plain text: neither special nor added, so that the tokenizer may merge it with its neighbours."""
    special = set(tokenizer.all_special_ids) | set(tokenizer.get_added_vocab().values())
    return lambda token: token not in special


def _agreeing(expected: Sequence[int], spliced: Sequence[int]) -> int:
    """How many ids agree from the start on."""
    pairs = enumerate(zip(expected, spliced, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(expected), len(spliced)))


@dataclass(frozen=True, slots=True)
class Asked:
    """How the processor is asked for items of one modality."""

    info: "BaseProcessingInfo"
    modality: Modality
    strategy: Strategy
    placeholder: str
    """The text that stands for one item."""
    target: Sequence[int]
    """Its ids."""
    headed: bool = False
    """Whether the processor itself puts the placeholder in front of a text that has none."""

    def ids(self, text: str, items: Sequence[object]) -> list[int]:
        """What the processor makes of `text` with `items`."""
        return process(self.info, self.modality, self.strategy, text, items, {}).ids

    def encode(self, text: str, *, special: bool) -> list[int]:
        """What the tokenizer makes of `text`, with what it puts before every text or without."""
        return list(self.info.get_tokenizer().encode(text, add_special_tokens=special))

    def refused(self, found: str) -> UnsupportedModelError:
        """The error for a processor that does more to a prompt than can be followed."""
        older = self.strategy.name == versions.preferred_strategy() == "legacy"
        hint = (
            f" From transformers {versions.OFFSETS_SINCE} on processors say what they replaced: try that."
            if older
            else ""
        )
        return UnsupportedModelError(
            type(self.info.get_hf_processor()).__name__,
            found=found,
            expected="equal ids",
            do="The processor edits the prompt beyond its placeholders, which this version can't follow." + hint,
        )


def check_oracle(asked: Asked, order: Sequence[tuple[object, Sequence[int]]]) -> Splicing:
    """The way of splicing for which the oracle holds; raises `UnsupportedModelError` if it doesn't hold for any.

    `order` holds items with their expansions. Between the first two is text, the others touch (C6), and newlines follow. One item
    where the processor itself puts it in front of the prompt.
    """
    if asked.headed:
        if (edit := _find_edit(asked, order, is_text_of(asked.info.get_tokenizer()))) is None:
            raise asked.refused(f"that {asked.placeholder!r} in front of a text doesn't explain what it makes of it")
        return Splicing(edit=edit)
    info, placeholder, name = asked.info, asked.placeholder, asked.modality.name
    tokenizer: Any = info.get_tokenizer()
    texts = [f"first {placeholder} then" + placeholder * (len(order) - 1) + "\nlast."]
    is_text = is_text_of(tokenizer)
    start, end = core_span(order[0][1], is_text)
    may_merge = (start, end) != (0, len(order[0][1]))
    if may_merge:
        texts.append(f"a\n{placeholder}\n\nb\n\n" + f"{placeholder}\n" * (len(order) - 1))
    expansions = {name: [expansion for _, expansion in order]}
    wanted = [asked.ids(text, [item for item, _ in order]) for text in texts]
    nearest: tuple[list[int], list[int], int] | None = None
    for merge in (False, True)[: 1 + may_merge]:
        holds = True
        for text, expected in zip(texts, wanted, strict=True):
            attempts: list[list[int]] = []
            for special in (True, False):
                prompt = asked.encode(text, special=special)
                found = find_targets(prompt, {name: asked.target})
                if len(found) != len(order):
                    continue
                if merge:
                    attempts.append(splice_merging(prompt, found, expansions, tokenizer, is_text)[0])
                else:
                    attempts.append(splice(prompt, found, expansions)[0])
            if expected in attempts:
                continue
            holds = False
            for spliced in attempts or [[]]:
                agreeing = _agreeing(expected, spliced)
                if nearest is None or agreeing > nearest[2]:
                    nearest = expected, spliced, agreeing
        if holds:
            return Splicing(merges_text=merge)
    if (edit := _find_edit(asked, order, is_text)) is not None:
        return Splicing(edit=edit)
    if (rule := _find_touching(asked, order, is_text)) is not None:
        return Splicing(touching=rule)
    assert nearest is not None
    expected, spliced, first = nearest
    raise asked.refused(
        f"{len(expected)} ids from the processor and {len(spliced)} from splicing the items' own expansions by"
        f" {asked.strategy.name}, unequal from position {first}: {expected[first : first + 4]} and {spliced[first : first + 4]}"
    )


def _find_edit(asked: Asked, order: Sequence[tuple[object, Sequence[int]]], is_text: IsText) -> PromptEdit | None:
    """The edit that the processor is seen to make in one prompt, if it is the one that explains others too: text before,
    between and behind items, a prompt that ends in newlines, and one that ends with an item."""
    placeholder, name = "" if asked.headed else asked.placeholder, asked.modality.name
    texts = (
        (f"first {placeholder} then {placeholder * (len(order) - 1)} last.", len(order)),
        (f"{placeholder}answer en\n\n", 1),
        (f"a\n{placeholder}", 1),
    )
    wanted = [asked.ids(text, [item for item, _ in order[:number]]) for text, number in texts]
    tokenizer: Any = asked.info.get_tokenizer()
    # The processor may leave out what the tokenizer puts before every text (PaliGemma), or keep it (Chameleon).
    for keeps_lead in (False, True):
        edit: PromptEdit | None = None
        for (text, number), expected in zip(texts, wanted, strict=True):
            prompt = asked.encode(text, special=keeps_lead)
            with_special = asked.encode(text, special=True)
            lead = with_special[: len(with_special) - len(prompt)]
            if lead + prompt != with_special:
                break
            prompt = headed(prompt, [asked.target] * asked.headed)
            found = find_targets(prompt, {name: asked.target})
            if len(found) != number:
                break
            spliced, placed = splice(prompt, found, {name: [expansion for _, expansion in order[:number]]})
            last_end = placed[-1][1] + len(order[number - 1][1])
            if edit is None:
                if (read := read_edit(expected, spliced, last_end)) is None:
                    break
                edit = PromptEdit(tuple(lead), *read)
            if apply_edit(spliced, last_end, edit, tokenizer, is_text) != expected:
                break
        else:
            return edit
    return None


def _find_touching(asked: Asked, order: Sequence[tuple[object, Sequence[int]]], is_text: IsText) -> TouchRule | None:
    """What the processor joins where an expansion touches another, a word or a marker, if one rule explains it all."""
    placeholder, name = asked.placeholder, asked.modality.name
    texts = (
        (f"first {placeholder} then{placeholder * (len(order) - 1)}\nlast.", len(order)),
        (f"{placeholder}word{placeholder}, and", min(2, len(order))),
        (f"a {placeholder}{NOT_SPACED}b> c", 1),
    )
    if len(order) < 2:
        return None
    wanted = [asked.ids(text, [item for item, _ in order[:number]]) for text, number in texts]
    tokenizer: Any = asked.info.get_tokenizer()
    for shared, spaced in ((True, True), (True, False), (False, True)):
        rule = TouchRule(shared, spaced)
        for (text, number), expected in zip(texts, wanted, strict=True):
            expansions = {name: [expansion for _, expansion in order[:number]]}
            prompts = [asked.encode(text, special=special) for special in (True, False)]
            found = [find_targets(prompt, {name: asked.target}) for prompt in prompts]
            attempts = [
                splice_touching(prompt, targets, expansions, rule, tokenizer, is_text)[0]
                for prompt, targets in zip(prompts, found, strict=True)
                if len(targets) == number
            ]
            if expected not in attempts:
                break
        else:
            return rule
    return None
