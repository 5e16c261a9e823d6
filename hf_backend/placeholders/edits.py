"""What an HF processor writes into a prompt besides its placeholders' expansions.

PaliGemma's puts a bos token behind the last picture and a newline at the end; Chameleon's ends a prompt with a token of its
own; Fuyu's puts the placeholder itself in front. Pure functions over lists of ints: takes spliced prompts beside the processor's
own ids, gives the edit; takes a spliced prompt and the edit, gives the ids with it. Not for placeholders' expansions (`splice`,
`seams`).
"""

from collections.abc import Sequence

from hf_backend.placeholders.base import Tokenizer
from hf_backend.placeholders.seams import IsText, merge_run
from hf_backend.records import PromptEdit


def read_edit(
    expected: Sequence[int], spliced: Sequence[int], last_end: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """What stands in `expected` behind the last expansion and at the end, and not in `spliced`; None where they differ in
    more.

    The last expansion ends at `last_end` of `spliced`, and text follows it. The least that explains the difference is taken.
    """
    rest = list(spliced[last_end:])
    tail = list(expected[last_end:])
    if list(expected[:last_end]) != list(spliced[:last_end]) or not rest:
        return None
    for inserted in range(len(tail) - len(rest) + 1):
        if tail[inserted : inserted + len(rest)] == rest:
            return tuple(tail[:inserted]), tuple(tail[inserted + len(rest) :])
    return None


def dropped(prompt: Sequence[int], edit: PromptEdit) -> list[int]:
    """`prompt` without the ids that the tokenizer puts before every text and the processor doesn't."""
    lead = list(edit.drop)
    return list(prompt[len(lead) :]) if lead and list(prompt[: len(lead)]) == lead else list(prompt)


def headed(prompt: Sequence[int], heads: Sequence[Sequence[int]]) -> list[int]:
    """`prompt` with the placeholders in front that the processor itself puts there."""
    return [*(token for head in heads for token in head), *prompt]


def apply_edit(ids: Sequence[int], last_end: int, edit: PromptEdit, tokenizer: Tokenizer, is_text: IsText) -> list[int]:
    """`ids`, a spliced prompt whose last expansion ends at `last_end`, with the edit.

    Where both are text, the end of the prompt is tokenized anew together with what is put behind it: Gemma's tokenizer has
    tokens of several newlines.
    """
    edited = [*ids[:last_end], *edit.after_last, *ids[last_end:]]
    start = len(edited)
    while start > last_end + len(edit.after_last) and is_text(edited[start - 1]):
        start -= 1
    run = [*edited[start:], *edit.at_end]
    if edit.at_end and all(is_text(token) for token in edit.at_end):
        return edited[:start] + merge_run(run, tokenizer)
    return edited[:start] + run
