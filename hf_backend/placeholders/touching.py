"""Splicing where a processor joins what touches an expansion.

Idefics2 puts a token before and behind every picture, but one between two that touch, and a space between a picture and a word that
touches it. Takes a prompt's ids, the targets found in it, the expansions and the rule; gives the ids and where each expansion lies,
with what is left of it. Pure but for the tokenizer.
"""

from collections.abc import Mapping, Sequence

from hf_backend.placeholders.base import Tokenizer
from hf_backend.placeholders.seams import IsText
from hf_backend.placeholders.splice import Target
from hf_backend.records import TouchRule

NOT_SPACED = "<"
"""A text that begins with it isn't taken for a word: markers of a prompt do."""


def splice_touching(
    prompt: Sequence[int],
    found: Sequence[Target],
    expansions: Mapping[str, Sequence[Sequence[int]]],
    rule: TouchRule,
    tokenizer: Tokenizer,
    is_text: IsText,
) -> tuple[list[int], list[tuple[Target, int, list[int]]]]:
    """As `splice`; each target with the position at which what is left of its expansion starts, and that."""
    ids: list[int] = []
    placed: list[tuple[Target, int, list[int]]] = []
    done = 0
    for number, target in enumerate(found):
        ids.extend(prompt[done : target.start])
        tokens = list(expansions[target.modality][target.index])
        if rule.shared and ids and ids[-1] == tokens[0]:
            tokens = tokens[1:]
        placed.append((target, len(ids), tokens))
        ids.extend(tokens)
        done = target.end
        until = found[number + 1].start if number + 1 < len(found) else len(prompt)
        if rule.shared and done < until and prompt[done] == tokens[-1]:
            done += 1
        if rule.spaced:
            run = _text_from(prompt[done:until], is_text)
            ids.extend(_spaced(run, tokenizer))
            done += len(run)
    ids.extend(prompt[done:])
    return ids, placed


def _text_from(tokens: Sequence[int], is_text: IsText) -> list[int]:
    """The text that `tokens` begin with."""
    end = next((index for index, token in enumerate(tokens) if not is_text(token)), len(tokens))
    return list(tokens[:end])


def _spaced(run: list[int], tokenizer: Tokenizer) -> list[int]:
    """`run` with a space in front where it begins with a word and decoding and encoding are each other's inverse."""
    text = tokenizer.decode(run)
    if not text or text[0].isspace() or text.startswith(NOT_SPACED):
        return run
    spaced = list(tokenizer.encode(f" {text}", add_special_tokens=False))
    return spaced if tokenizer.decode(spaced) == f" {text}" else run
