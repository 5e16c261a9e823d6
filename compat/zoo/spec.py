"""What one family needs to be built: names of tokens, how a prompt looks, arguments of config and processor.

Takes nothing; gives the frozen records `Spec` and `Turns`. Not for building (`compat.zoo.build`) and not for a table of
what works: a spec describes a family, it does not judge it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    Arguments: TypeAlias = Callable[[PreTrainedTokenizerFast], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Turns:
    """The text around a message; one record gives both the prompt of a test and the chat template."""

    user: str = "<|im_start|>user\n"
    user_end: str = "<|im_end|>\n"
    assistant: str = "<|im_start|>assistant\n"
    assistant_end: str = "<|im_end|>\n"


@dataclass(frozen=True, slots=True)
class Spec:
    """One family, as data."""

    name: str
    """The family's `model_type`."""
    placeholders: Mapping[str, str]
    """Modality to the text that stands for one item in a prompt, with what a chat template puts around it; empty where the
    processor itself puts the item in front of the prompt."""
    special_tokens: Sequence[str]
    """Tokens that the tokenizer must keep whole, in the order in which they get ids."""
    config_class: str
    """Name of the family's config class in transformers."""
    config: "Arguments"
    """Arguments of a tiny config; takes the tokenizer, so that ids and the vocabulary's size come from it."""
    processor_class: str
    """Name of the family's processor class in transformers."""
    processor: "Arguments"
    """Arguments of a processor with small sizes around the tokenizer."""
    named_tokens: Mapping[str, str] = field(default_factory=dict)
    """Tokenizer attributes that the family's processor reads (`image_token` and the like), each a special token."""
    model_class: str = "AutoModelForImageTextToText"
    """Name of the class in transformers that makes the family's model with its head; mostly an auto class."""
    answers_class: str | None = None
    """Name of the class that answers in text, where that is a part of the checkpoint (an Omni's thinker)."""
    hub_prefixes: Mapping[str, str] = field(default_factory=dict)
    """Prefix of a weight's name as transformers saves it to the one that the family's checkpoints on the hub have, where
    these differ."""
    requires: Sequence[str] = ()
    """Modules that building and loading take besides transformers' own requirements."""
    turns: Turns = Turns()
    bos: str | None = None
    """The token which the tokenizer puts before every text, where the family has one."""
    pieces: Sequence[str] = ()
    """Texts that are kept whole but are no special tokens, as sentencepiece's symbols of the user are. A tokenizer with them marks
    the beginning of every text with a piece of its own, as sentencepiece does."""
    split: str | None = None
    """The expression by which the tokenizer cuts a text before merging, where transformers puts the family's own class
    in place of the one that was saved; GPT-2's if there is none."""
    woven: str | None = None
    """Option of the family's processor and model under which a video's sound is woven into it."""
    smallest_picture: tuple[int, int] = (7, 5)
    """Width and height of the smallest picture that transformers' own model takes; odd and below a patch if it can."""
    std: float = 0.15
    """Standard deviation of the random weights; large enough that an item changes the answer."""
    seed: int = 0

    @property
    def headed(self) -> bool:
        """Whether prompts have no placeholder: the processor itself puts one picture in front."""
        return self.placeholders.get("image") == ""

    def prompt(self, parts: Sequence[str]) -> str:
        """One user message made of `parts` (texts and placeholders, in order), then the opening of the answer."""
        return self.turns.user + "".join(parts) + self.turns.user_end + self.turns.assistant
