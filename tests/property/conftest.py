"""Families that the installed transformers is too old for are skipped, with the reason of `compat.expected.SINCE`."""

from importlib import metadata

import pytest
from packaging.version import Version

from compat.expected import SINCE

INSTALLED = Version(metadata.version("transformers"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        callspec = getattr(item, "callspec", None)
        for value in callspec.params.values() if callspec else ():
            family = value[0] if isinstance(value, tuple) and value else value
            if isinstance(family, str) and family in SINCE and Version(SINCE[family][0]) > INSTALLED:
                release, reason = SINCE[family]
                item.add_marker(pytest.mark.skip(reason=f"{family} needs transformers {release}: {reason}"))
