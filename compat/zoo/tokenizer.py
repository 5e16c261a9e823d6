"""A small fast tokenizer made on the spot: byte-level BPE, so that any text tokenizes.

Takes a spec; gives a `PreTrainedTokenizerFast` with the family's special tokens. The same spec gives the same ids in
every process. Like the family's own tokenizer only in its special tokens: answers of random weights mean nothing.
"""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compat.zoo.spec import Spec
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

END = "<|endoftext|>"
"""End of text and padding; an extra token so that no marker of a prompt ends an answer."""

BASE_VOCABULARY = 384
"""256 bytes and some merges: prompts are short, and an embedding table of this size weighs nothing."""

MARK = "\N{LOWER ONE EIGHTH BLOCK}"
"""What sentencepiece marks the beginning of a text with."""
WORDS = r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""How GPT-2 cuts a text."""

CORPUS = (
    "Look at the picture and say what is in it, please.",
    "There are two pictures here: the first one and the second one.",
    "What is the difference between them? Compare this with that.",
    "USER: Describe the image. ASSISTANT: The image shows a small red square beside a large blue circle.",
    "user\nassistant\nsystem\nUser: Assistant: User:\nAssistant:\n",
    # A run of newlines is one token in the tokenizers of Llama 3 and Gemma, also where it ends a text: Idefics3 and
    # Gemma 3 put newlines at the edges of an expansion, where they merge,
    # with those of the text beside it as well.
    "One line.\nAnother line.\n\n",
    "And then\n\n",
    "then again\n\n",
    *("Then three.\n\n\n",) * 4,
)
"""What the merges are learned from."""


def make_tokenizer(spec: Spec) -> "PreTrainedTokenizerFast":
    """The tokenizer of `spec`: ids 0 to 383 are text, special tokens follow in the spec's order."""
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if spec.split:
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(spec.split), behavior="isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=BASE_VOCABULARY,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if tokenizer.get_vocab_size() != BASE_VOCABULARY:
        raise ValueError(
            f"{spec.name}: found {tokenizer.get_vocab_size()} tokens after training; expected {BASE_VOCABULARY}. "
            "Add sentences to CORPUS or lower BASE_VOCABULARY."
        )

    if spec.pieces:
        _add_pieces(tokenizer, (MARK, *spec.pieces))
    specials = list(dict.fromkeys([END, *([spec.bos] if spec.bos else []), *spec.special_tokens]))
    if missing := [token for token in spec.named_tokens.values() if token not in specials]:
        raise ValueError(
            f"{spec.name}: found named tokens {missing} that are no special tokens; expected each of them in "
            "`special_tokens`. Add them there."
        )
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    if spec.bos:
        tokenizer.post_processor = processors.Sequence(
            [
                processors.ByteLevel(trim_offsets=False),
                processors.TemplateProcessing(
                    single=f"{spec.bos} $A",
                    pair=f"{spec.bos} $A {spec.bos} $B",
                    special_tokens=[(spec.bos, tokenizer.token_to_id(spec.bos))],
                ),
            ]
        )
    fast: PreTrainedTokenizerFast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=spec.bos,
        eos_token=END,
        pad_token=END,
        extra_special_tokens=dict(spec.named_tokens),
        clean_up_tokenization_spaces=False,
    )
    return fast


def _add_pieces(tokenizer: Any, pieces: Sequence[str]) -> None:
    """Have `tokenizer` keep `pieces` whole, with ids behind the text's, and put `MARK` before every text."""
    from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers

    described = json.loads(tokenizer.to_str())
    words = [tokenizer.pre_tokenizer.pre_tokenize_str(piece) for piece in pieces]
    texts = [*described["model"]["vocab"], *("".join(part for part, _ in word) for word in words)]
    # Id 0 is padding: Fuyu's processor makes it so whatever it was.
    described["model"]["vocab"] = {END: 0} | {text: number for number, text in enumerate(texts, start=1)}
    # A word that is in the vocabulary is taken as it is, without merges that lead to it.
    described["model"]["ignore_merges"] = True
    made = Tokenizer.from_str(json.dumps(described))
    tokenizer.model = made.model
    tokenizer.normalizer = normalizers.Prepend(MARK)
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(MARK, 1, 0)])
    whole = "|".join(re.escape(piece) for piece in pieces)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(whole), behavior="isolated"),
            pre_tokenizers.Split(Regex(f"{whole}|{WORDS}"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def token_id(tokenizer: "PreTrainedTokenizerFast", token: str) -> int:
    """The id of `token`; `ValueError` if the tokenizer does not keep it whole."""
    ids = tokenizer.encode(token, add_special_tokens=False)
    if len(ids) != 1:
        raise ValueError(f"{token!r}: found {len(ids)} ids {ids}; expected one. Add it to the spec's `special_tokens`.")
    return int(ids[0])


def vocabulary_size(tokenizer: "PreTrainedTokenizerFast") -> int:
    """Rows of the embedding table: all ids, rounded up to a multiple of 64 as real checkpoints are."""
    return -(-len(tokenizer) // 64) * 64
