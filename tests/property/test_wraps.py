"""Tokens that a processor puts around an item only where the prompt has neither of them (C3, C5).

Qwen2-Audio's before transformers 5.15, and the made-up model's on every release.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from made_up import SPEC, make_folder

from compat.processors import FamilyProcessor, processor_for
from hf_backend.placeholders.splice import find_targets
from hf_backend.placeholders.wraps import unwrapped
from hf_backend.probe import calls
from hf_backend.probe.samples import clip
from hf_backend.records import WrapRule

pytestmark = pytest.mark.processing

START, SOUND, END = "<hear>", "<sound>", "</hear>"
PROMPTS = {
    "bare": f"What is {SOUND} here?",
    "wrapped": f"What is {START}{SOUND}{END} here?",
    "only the start": f"What is {START}{SOUND} here?",
    "only the end": f"What is {SOUND}{END} here?",
    "the wrong way round": f"What is {END}{SOUND}{START} here?",
    "both ways": f"{SOUND} beside {START}{SOUND}{END}",
    "touching": f"{SOUND}{SOUND}{START}{SOUND}{END}{START}{SOUND}{END}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_MODULES_CACHE", str(tmp_path_factory.mktemp("modules")))
        yield make_folder(tmp_path_factory.mktemp("made_up") / "model")


@pytest.fixture(scope="module")
def processor(folder: Path) -> FamilyProcessor:
    from vllm.config import ModelConfig

    from hf_backend.plugin import register

    register()
    config = ModelConfig(
        model=str(folder),
        model_impl="transformers",
        trust_remote_code=True,
        dtype="float32",
        max_model_len=2048,
        limit_mm_per_prompt={"image": 2, "audio": 4},
    )
    return processor_for(config, cached=True)


def test_the_rule_is_measured(processor: FamilyProcessor) -> None:
    profiles: Mapping[str, Any] = processor.processor.info.profile.modalities
    assert profiles["image"].wraps is None
    tokenizer: Any = processor.processor.info.get_tokenizer()
    start, end = (tokenizer.convert_tokens_to_ids(token) for token in (START, END))
    assert profiles["audio"].wraps == WrapRule(
        head=(start,), tail=(end,), left_out=frozenset({(True, True), (True, False), (False, True)})
    )


@pytest.mark.parametrize("name", PROMPTS)
def test_c3_ids_are_the_processors_own(processor: FamilyProcessor, name: str) -> None:
    """Whatever stands around a placeholder; and the same item from the cache, in another prompt, takes no call."""
    text = PROMPTS[name]
    clips = [clip(2000 + 900 * number, number) for number in range(text.count(SOUND))]
    hf_processor: Any = processor.processor.info.get_hf_processor()
    expected = hf_processor(text=[text], audio=clips, return_tensors="pt")["input_ids"][0].tolist()
    for other in (name, *PROMPTS):
        if PROMPTS[other].count(SOUND) == len(clips):
            found = processor(PROMPTS[other], {"audio": [(one, 8000) for one in clips]})
            if other == name:
                assert found["prompt_token_ids"] == expected
    before = calls.count()
    again = processor(text, {"audio": [(one, 8000) for one in clips]})
    assert again["prompt_token_ids"] == expected
    assert calls.count() == before
    embed = hf_processor.tokenizer.convert_tokens_to_ids(SOUND)
    for place in again["mm_placeholders"]["audio"]:
        assert place.get_num_embeds() == expected[place.offset : place.offset + place.length].count(embed)


def test_an_expansion_without_its_wraps_stays() -> None:
    """Embeddings that a request brings along may stand alone."""
    rule = WrapRule(head=(1,), tail=(2,), left_out=frozenset({(True, True)}))
    prompt = [1, 9, 2, 1, 9, 2, 9]
    found = find_targets(prompt, {"audio": [9]})
    made = unwrapped(prompt, found, {"audio": [[1, 5, 5, 2], [5, 5], [1, 5, 2]]}, {"audio": rule})
    assert made == {"audio": [[5, 5], [5, 5], [1, 5, 2]]}


def test_the_tokenizer_of_the_made_up_model_keeps_its_tokens_whole() -> None:
    """Otherwise the prompts above wouldn't show anything."""
    assert {START, END, SOUND} <= set(SPEC.special_tokens)
