"""Splicing where the tokenizer would merge an expansion's text with the text beside it.

Gemma3 expands a picture to `"\\n\\n" + <start> … <end> + "\\n\\n"`. Next to a newline of the prompt, a tokenizer that sees
the whole text merges the newlines into other tokens than it makes of each part. Takes a prompt's ids, the targets found in
it and the expansions; gives the ids as if the whole text had been tokenized, and where each expansion's core lies. The core
of an expansion runs from its first to its last special token; the text at its edges becomes part of the prompt's text.
"""

from collections.abc import Callable, Mapping, Sequence

from hf_backend.placeholders.base import Tokenizer
from hf_backend.placeholders.splice import Target

IsText = Callable[[int], bool]
"""Whether a token is plain text: one that the tokenizer may merge with its neighbours."""


def core_span(expansion: Sequence[int], is_text: IsText) -> tuple[int, int]:
    """Start and end of what lies between the text at an expansion's edges; the whole of it if all of it is text."""
    special = [index for index, token in enumerate(expansion) if not is_text(token)]
    return (special[0], special[-1] + 1) if special else (0, len(expansion))


def splice_merging(
    prompt: Sequence[int],
    found: Sequence[Target],
    expansions: Mapping[str, Sequence[Sequence[int]]],
    tokenizer: Tokenizer,
    is_text: IsText,
) -> tuple[list[int], list[tuple[Target, int]]]:
    """As `splice`, with the runs of text at expansions' edges tokenized anew together with the text they touch.

    Returns the ids, and each target with the position at which its expansion's core starts in them.
    """
    ids: list[int] = []
    placed: list[tuple[Target, int]] = []
    run: list[int] = []  # the text since the last special token, still to be tokenized
    touched = False  # whether an expansion's edge is part of the run

    def close_run() -> None:
        nonlocal run, touched
        ids.extend(merge_run(run, tokenizer) if touched else run)
        run, touched = [], False

    def add(tokens: Sequence[int]) -> None:
        for token in tokens:
            if is_text(token):
                run.append(token)
            else:
                close_run()
                ids.append(token)

    done = 0
    for target in found:
        expansion = list(expansions[target.modality][target.index])
        start, end = core_span(expansion, is_text)
        add(prompt[done : target.start])
        run.extend(expansion[:start])
        touched = touched or start > 0
        close_run()
        placed.append((target, len(ids)))
        ids.extend(expansion[start:end])
        run.extend(expansion[end:])
        touched = end < len(expansion)
        done = target.end
    add(prompt[done:])
    close_run()
    return ids, placed


def merge_run(run: list[int], tokenizer: Tokenizer) -> list[int]:
    """The tokens of the run's text, where decoding and encoding are each other's inverse; else the run as it is."""
    text = tokenizer.decode(run)
    merged = list(tokenizer.encode(text, add_special_tokens=False))
    return merged if tokenizer.decode(merged) == text else run
