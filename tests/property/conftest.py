"""Families that the installed transformers can't be asked for aren't asked, each for a reason that is shown to hold."""

import pytest

from compat.expected import NEEDS
from compat.processors import processor_of
from compat.zoo.registry import spec
from compat.zoo.untyped import transformers
from hf_backend.versions import transformers_version


@pytest.fixture(autouse=True)
def _asked_on_this_release(request: pytest.FixtureRequest) -> None:
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if (family := parameters.get("family")) is None:
        return
    missing = [
        name for name in (spec(family).config_class, spec(family).processor_class) if not hasattr(transformers, name)
    ]
    if missing:
        pytest.skip(f"this transformers has no {' and no '.join(missing)}")
    if family in NEEDS and transformers_version() < NEEDS[family].transformers:
        with pytest.raises(ValueError, match=r"The processor edits the prompt|a text that it replaces once"):
            processor_of(family, cached=False)
        pytest.skip(NEEDS[family].reason)
