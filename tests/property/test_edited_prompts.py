"""C11: PaliGemma's processor writes into the prompt beside its placeholders, which only offsets tell from an expansion."""

import pytest

from compat.processors import processor_of
from hf_backend import modalities, versions
from hf_backend.errors import UnsupportedModelError
from hf_backend.probe.alone import process
from hf_backend.probe.oracle import Asked, check_oracle
from hf_backend.probe.profile import STRATEGIES
from hf_backend.probe.samples import SMALL, picture

pytestmark = pytest.mark.processing

OLDER = versions.preferred_strategy() == "legacy"


@pytest.mark.skipif(not OLDER, reason="served by offsets: tests/property/test_independence.py")
def test_paligemma_is_refused_at_start_on_an_older_transformers() -> None:
    with pytest.raises(ValueError, match=r"PaliGemmaProcessor: found .* From transformers 5\.15\.0 on"):
        _ = processor_of("paligemma", cached=False).processor.info.profile


@pytest.mark.skipif(OLDER, reason="refused at start: above")
def test_without_offsets_the_oracle_refuses_paligemma() -> None:
    info = processor_of("paligemma", cached=False).processor.info
    tokenizer, legacy, item = info.get_tokenizer(), STRATEGIES["legacy"], picture(*SMALL)
    seen = process(info, modalities.IMAGE, legacy, "<image>", [item], {})
    replaced = legacy.read(seen.output, seen.ids, "<image>", "image", tokenizer)
    assert replaced is not None
    target = tokenizer.encode("<image>", add_special_tokens=False)
    order = [(item, replaced.ids)] * 3
    with pytest.raises(UnsupportedModelError, match=r"PaliGemmaProcessor: found .* beyond its placeholders"):
        check_oracle(Asked(info, modalities.IMAGE, legacy, "<image>", target), order)
