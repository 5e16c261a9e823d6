"""Whether a processor leaves out of an expansion what the prompt has around the placeholder already.

Takes how a modality is asked, one item with its expansion, and what stands around embeddings in every expansion
(`probe.frame`); gives the rule. One call of the processor where there is anything around them, three where there is a rule.
"""

from typing import Any

from hf_backend.errors import UnsupportedModelError
from hf_backend.placeholders.edits import apply_edit, dropped
from hf_backend.placeholders.splice import find_targets, occurrences, splice
from hf_backend.placeholders.wraps import unwrapped
from hf_backend.probe.frame import Frame
from hf_backend.probe.oracle import Asked, is_text_of
from hf_backend.records import PromptEdit, WrapRule

BESIDE = ((True, True), (True, False), (False, True))
"""Whether the prompt has the head, and the tail."""


def find_wraps(
    asked: Asked, item: object, expansion: tuple[int, ...], frame: Frame, edit: PromptEdit | None
) -> WrapRule | None:
    """The rule, None where the processor takes no notice of what stands around a placeholder.

    Raises `UnsupportedModelError` where what it does with a prompt that has the tokens is neither.
    """
    head, tail = frame
    tokenizer: Any = asked.info.get_tokenizer()
    is_text = is_text_of(tokenizer)
    around = [*head, *tail]
    # Text merges with a prompt's, which no template relies on; and Gemma 3's placeholder is itself part of what it becomes.
    if not around or any(map(is_text, around)) or occurrences(around, asked.target):
        return None
    texts = tokenizer.decode(list(head)), tokenizer.decode(list(tail))
    if [tokenizer.encode(text, add_special_tokens=False) for text in texts] != [list(head), list(tail)]:
        return None
    left_out: set[tuple[bool, bool]] = set()
    for beside in BESIDE:
        before, behind = (text if there else "" for text, there in zip(texts, beside, strict=True))
        text = f"first {before}{asked.placeholder}{behind} last."
        expected = asked.ids(text, [item])
        plain, bare = _spliced(asked, text, expansion, WrapRule(head, tail, frozenset(BESIDE)), edit)
        if expected in plain:
            if beside == BESIDE[0]:
                return None
        elif expected in bare:
            left_out.add(beside)
        else:
            raise UnsupportedModelError(
                type(asked.info.get_hf_processor()).__name__,
                found=f"{expected} for one {asked.modality.name} in the prompt {text!r}",
                expected=f"its expansion {list(expansion)} in the placeholder's place, with or without {list(head)} before and"
                f" {list(tail)} behind the embeddings",
                do="The processor edits the prompt beyond its placeholders, which this version can't follow.",
            )
    return WrapRule(head, tail, frozenset(left_out))


def _spliced(
    asked: Asked, text: str, expansion: tuple[int, ...], rule: WrapRule, edit: PromptEdit | None
) -> tuple[list[list[int]], list[list[int]]]:
    """The prompt's ids with the whole expansion, and with what `rule` leaves of it; with and without what the tokenizer puts
    before every text."""
    tokenizer: Any = asked.info.get_tokenizer()
    name = asked.modality.name
    plain: list[list[int]] = []
    bare: list[list[int]] = []
    for special in (True, False):
        prompt = asked.encode(text, special=special)
        if edit is not None:
            prompt = dropped(prompt, edit)
        found = find_targets(prompt, {name: asked.target})
        if len(found) != 1:
            continue
        whole = {name: [expansion]}
        for made, expansions in ((plain, whole), (bare, unwrapped(prompt, found, whole, {name: rule}))):
            ids, ((_, start),) = splice(prompt, found, expansions)
            end = start + len(expansions[name][0])
            made.append(ids if edit is None else apply_edit(ids, end, edit, tokenizer, is_text_of(tokenizer)))
    return plain, bare
