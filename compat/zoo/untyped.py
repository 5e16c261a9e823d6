"""transformers without its annotations, imported on first use.

Gives `transformers` as `Any`. Some of its constructors are annotated, some are not, and which changes from release to
release: strict type checks of our code must not depend on that. Lazy, so that naming families costs no import of torch.
Not for anything but transformers.
"""

import importlib
from typing import Any


class _Transformers:
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("transformers"), name)


transformers: Any = _Transformers()
