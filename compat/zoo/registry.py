"""Every spec under its name.

Takes a family's name; gives its spec. Not the specs themselves: they stand in `compat.zoo.families`, one module a
lineage, each with a `SPECS` tuple. A new family is one more entry there.
"""

import functools
import importlib
import pkgutil
from collections.abc import Mapping

from compat.zoo import families as families_package
from compat.zoo.spec import Spec


@functools.cache
def _specs() -> Mapping[str, Spec]:
    specs: dict[str, Spec] = {}
    for module in pkgutil.iter_modules(families_package.__path__):
        for spec in importlib.import_module(f"{families_package.__name__}.{module.name}").SPECS:
            if spec.name in specs:
                raise ValueError(f"{spec.name}: found two specs; expected one. Remove that in {module.name}.")
            specs[spec.name] = spec
    return dict(sorted(specs.items()))


def families(modality: str | None = None) -> tuple[str, ...]:
    """The names of all families, sorted; only those that take items of `modality` if one is named."""
    return tuple(name for name, spec in _specs().items() if modality in (None, *spec.placeholders))


def spec(family: str) -> Spec:
    """The spec of `family`; `KeyError` naming the known ones if there is none."""
    try:
        return _specs()[family]
    except KeyError:
        raise KeyError(f"{family}: no such family; expected one of {', '.join(families())}") from None
