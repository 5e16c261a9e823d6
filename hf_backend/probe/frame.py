"""What stands around a modality's embeddings in every expansion: where embeddings go that a request brings along.

Takes the expansions of two items; gives the tokens before the first and after the last embedding. Pure but for decoding.
"""

from collections.abc import Sequence
from typing import Any

from hf_backend.placeholders.seams import IsText
from hf_backend.probe.oracle import is_text_of

Frame = tuple[tuple[int, ...], tuple[int, ...]]


def frame(expansions: Sequence[Sequence[int]], embed_ids: frozenset[int], tokenizer: Any) -> Frame:
    """Tokens before the first and after the last embedding, as far as all expansions agree.

    Text other than blanks is left out, and what stands beyond it: it tells of the item (SmolVLM: how many frames, and when each
    was taken), and of embeddings that isn't known. Blank lines are kept (Gemma3).
    """
    heads, tails = [], []
    for expansion in expansions:
        places = [index for index, token in enumerate(expansion) if token in embed_ids]
        if not places:
            return (), ()
        heads.append(tuple(expansion[: places[0]]))
        tails.append(tuple(expansion[places[-1] + 1 :]))
    head = heads[0] if len(set(heads)) == 1 else ()
    tail = tails[0] if len(set(tails)) == 1 else ()
    is_text = is_text_of(tokenizer)
    return _until_words(head[::-1], tokenizer, is_text)[::-1], _until_words(tail, tokenizer, is_text)


def _until_words(tokens: tuple[int, ...], tokenizer: Any, is_text: IsText) -> tuple[int, ...]:
    for index, token in enumerate(tokens):
        if is_text(token) and tokenizer.decode([token]).strip():
            return tokens[:index]
    return tokens
