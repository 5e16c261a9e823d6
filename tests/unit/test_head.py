"""What classes with a head make of logits, measured on their skeletons."""

import pytest
from transformers import AutoConfig

from compat.zoo.store import checkpoint
from hf_backend.weights.head import head_rule
from hf_backend.weights.skeleton import skeleton

pytestmark = pytest.mark.language


@pytest.mark.parametrize(
    ("family", "capped"),
    [
        ("paligemma2", False),
        ("paligemma", False),
        ("gemma3n", True),
        ("qwen2_vl", False),
        ("aya_vision", False),
        ("llava", False),
    ],
)
def test_a_cap_is_the_business_of_the_class_with_its_head(family: str, capped: bool) -> None:
    """PaliGemma 2's text config has a cap that its class doesn't use; Gemma 3n's does. A scale (Aya Vision) is no cap."""
    folder = checkpoint(family)
    config = AutoConfig.from_pretrained(folder)
    rule = head_rule(skeleton(config, config.architectures, str(folder)))
    assert rule.capped is capped
    assert rule.masked == ()


def test_chameleon_never_gives_a_token_of_a_picture() -> None:
    folder = checkpoint("chameleon")
    config = AutoConfig.from_pretrained(folder)
    rule = head_rule(skeleton(config, config.architectures, str(folder)))
    pictures = sorted(token for name, token in config.vocabulary_map.items() if name.startswith("IMGIMG"))
    assert pictures
    assert list(rule.masked) == pictures
