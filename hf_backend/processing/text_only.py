"""What an HF processor puts behind a prompt without items, and having vLLM put it there.

vLLM sends such a prompt past its multimodal processor, but tokenizes it by parameters that it asks the processing info for, and
these see the ids of every prompt last. Chameleon's processor ends each text with a separator. Not for prompts with items
(`hf_backend.placeholders.edits`).
"""

import dataclasses
from typing import Any

from hf_backend.upstream import TokenizeParams, init_logger

logger = init_logger("vllm.hf_backend")

TEXTS = ("some text", "and another one.")


@dataclasses.dataclass(frozen=True)
class TailParams(TokenizeParams):
    """vLLM's parameters, and ids behind every prompt without items."""

    tail: tuple[int, ...] = ()

    def with_kwargs(self, **tokenization_kwargs: Any) -> TokenizeParams:
        """See the class in vLLM, which makes one of its own."""
        return with_tail(super().with_kwargs(**tokenization_kwargs), self.tail)

    def apply_post_tokenization(self, tokenizer: Any, prompt: Any) -> Any:
        """See the class in vLLM; `prompt` has `prompt_token_ids`, or embeddings that are left as they are."""
        if "prompt_token_ids" in prompt and not prompt.get("multi_modal_data"):
            prompt["prompt_token_ids"] = [*prompt["prompt_token_ids"], *self.tail]
        return super().apply_post_tokenization(tokenizer, prompt)


def with_tail(params: TokenizeParams, tail: tuple[int, ...]) -> TokenizeParams:
    """`params`, with `tail` behind every prompt without items."""
    if not tail:
        return params
    return TailParams(
        **{field.name: getattr(params, field.name) for field in dataclasses.fields(params)} | {"tail": tail}
    )


def read_tail(processor: Any, tokenizer: Any) -> tuple[int, ...]:
    """The ids that `processor` puts behind what `tokenizer` makes of a text; none where it refuses texts alone, or does anything
    else with them."""
    found = {_tail(processor, tokenizer, text) for text in TEXTS}
    (tail, *others) = found
    return tail or () if not others else ()


def _tail(processor: Any, tokenizer: Any, text: str) -> tuple[int, ...] | None:
    try:
        ids = processor(text=[text], return_tensors="pt")["input_ids"][0].tolist()
    except Exception as error:  # noqa: BLE001 - whatever a processor raises for a text alone (PaliGemma, speech models)
        logger.debug("hf_backend: %s takes no text alone: %s", type(processor).__name__, error)
        return None
    plain = tokenizer(text)["input_ids"]
    return tuple(ids[len(plain) :]) if ids[: len(plain)] == plain else None
