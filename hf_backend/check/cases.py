"""What a model is asked when it is held to transformers, as data.

Takes the placeholder of each served modality; gives requests. Items are the two small ones that processors are measured
with. Not for asking (`hf_backend.check.reference`, `hf_backend.check.engine`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

NUM_TOKENS = 10
"""Length of an answer."""

TOGETHER = ", all at once"
"""What is put behind a request's name where it was asked together with all others."""


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt and its items."""

    name: str
    text: str
    items: tuple[tuple[str, int], ...] = ()
    """Modality and which of its two items, in the order of the placeholders."""

    def of(self, modality: str) -> tuple[int, ...]:
        """Which items of one modality."""
        return tuple(index for name, index in self.items if name == modality)


def requests(placeholders: Mapping[str, str]) -> tuple[Request, ...]:
    """Every request, in the order of asking: the last of a modality repeats its first, which is cached then."""
    return tuple(_requests(placeholders))


def _requests(placeholders: Mapping[str, str]) -> Iterator[Request]:
    yield Request("text alone", "What is the difference between a square and a circle?")
    for name, text in placeholders.items():
        yield Request(f"one {name}", f"Look at {text} and say what it is.", ((name, 0),))
        yield Request(f"another {name}", f"Look at {text} and say what it is.", ((name, 1),))
        two = f"First {text}, then {text}. Compare them."
        yield Request(f"two {name}s", two, ((name, 1), (name, 0)))
        yield Request(f"touching {name}s", f"Here: {text}{text} What changed?", ((name, 0), (name, 0)))
        yield Request(f"one {name} again", f"Look at {text} and say what it is.", ((name, 0),))
    if len(placeholders) > 1:
        parts: Sequence[str] = [f"{text}, " for text in placeholders.values()]
        yield Request(
            "one of each", f"Take {''.join(parts)}and say what they are.", tuple((n, 0) for n in placeholders)
        )
