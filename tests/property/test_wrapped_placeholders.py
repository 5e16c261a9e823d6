"""C5: a chat template may have put an expansion's edges around the placeholder already, and the processor leaves its own out.

Qwen2-Audio's does before transformers 5.15. On any release: a subclass of the installed processor that does what that one did.
"""

import functools
import re
from typing import Any

import pytest

from compat.processors import processor_of, processor_with
from hf_backend.probe.samples import clip

pytestmark = pytest.mark.processing

PLACE, HEAD, TAIL = "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>"
PROMPTS = (
    PLACE,
    f"{HEAD}{PLACE}{TAIL}",
    f"x {HEAD}{PLACE}{TAIL} y {PLACE} z",
    f"{HEAD}{PLACE} a {PLACE}{TAIL}",
    f"{PLACE}{PLACE}",
    f"{HEAD}{PLACE}{TAIL}{HEAD}{PLACE}{TAIL}\n",
    f"{HEAD}{PLACE}{PLACE}{TAIL}",
    f"{TAIL}{PLACE}{HEAD}",
)
CLIPS = [clip(8_000, 1), clip(16_001, 2)]


def ids_of(processor: Any, prompt: str) -> list[int]:
    output = processor(text=prompt, audio=CLIPS[: prompt.count(PLACE)], sampling_rate=16_000)
    return [int(token) for token in output["input_ids"][0]]


@functools.cache
def edged_processor() -> Any:
    """vLLM's processor over an HF processor that writes edges around a clip where neither is there."""
    from transformers import Qwen2AudioProcessor

    class Edged(Qwen2AudioProcessor):  # type: ignore[misc]
        def __call__(self, text: Any = None, audio: Any = None, **options: Any) -> Any:
            texts = [text] if isinstance(text, str) else text
            bare = re.compile(f"(?<!{re.escape(HEAD)}){re.escape(PLACE)}(?!{re.escape(TAIL)})")
            return super().__call__(text=[bare.sub(HEAD + PLACE + TAIL, one) for one in texts], audio=audio, **options)

    return processor_with("qwen2_audio", Edged)


def served_ids(processor: Any, prompt: str) -> list[int]:
    items = processor.info.parse_mm_data({"audio": CLIPS[: prompt.count(PLACE)]})
    return list(processor(prompt, mm_items=items, hf_processor_mm_kwargs={})["prompt_token_ids"])


@pytest.mark.parametrize("prompt", PROMPTS)
def test_edges_that_are_there_are_not_put_in_again(prompt: str) -> None:
    processor = edged_processor()
    assert served_ids(processor, prompt) == ids_of(processor.info.get_hf_processor(), prompt)


def test_the_rule_is_measured() -> None:
    profile = edged_processor().info.profile.modalities["audio"]
    assert profile.strategy == "legacy", "what it reports is not all that it writes"
    assert profile.wrapping is not None
    assert profile.wrapping.dropped[True, True] == profile.wrapping.dropped[True, False] == (True, True)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_installed_processor(prompt: str) -> None:
    processor = processor_of("qwen2_audio", cached=True).processor
    assert served_ids(processor, prompt) == ids_of(processor.info.get_hf_processor(), prompt)
