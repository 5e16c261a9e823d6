"""The requests that every family which takes pictures is asked, as data.

Takes a spec; gives its cases. Those with videos and clips stand in `compat.parity.media`. A case is a list of rounds;
the requests of one round are given to the engine together, the next round starts when all are answered. Not for the
family's own words: a request holds texts and items, and `Spec.prompt` makes a prompt of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from compat.zoo import Spec


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture; equal ones are the same picture, pixel for pixel."""

    width: int
    height: int
    seed: int

    modality = "image"


@dataclass(frozen=True, slots=True)
class Video:
    """One video, every frame of which is to be kept; equal ones are the same video."""

    width: int
    height: int
    frames: int
    seed: int

    modality = "video"


@dataclass(frozen=True, slots=True)
class Clip:
    """One clip of sound; equal ones are the same clip."""

    seconds: float
    seed: int

    modality = "audio"


Item: TypeAlias = "Picture | Video | Clip"
Part: TypeAlias = "str | Item"


@dataclass(frozen=True, slots=True)
class Request:
    """One user message: texts and items in order."""

    parts: tuple[Part, ...]
    as_ids: bool = False
    """Give the engine the ids of the unexpanded prompt in place of its text."""
    woven: str | None = None
    """Option of processor and model under which each video is woven into the clip behind it, which has no placeholder then."""

    @property
    def items(self) -> tuple[Item, ...]:
        """The request's items, in order."""
        return tuple(part for part in self.parts if not isinstance(part, str))


@dataclass(frozen=True, slots=True)
class Case:
    """A few requests and what they show."""

    name: str
    shows: str
    contracts: tuple[str, ...]
    """Numbers of the contracts that a wrong answer would break (docs: contracts C1 to C12)."""
    rounds: tuple[tuple[Request, ...], ...]

    def requests(self) -> Iterator[Request]:
        """All requests, in the order in which they are asked."""
        for asked_together in self.rounds:
            yield from asked_together


WIDE = (64, 48)
TALL = (40, 72)
LARGE = (95, 61)
"""Width and height in pixels; each another number of embeddings wherever the family has more than one."""

_LOOK, _SAY = "Look at ", " and say what is in it, please."


def _one(size: tuple[int, int], seed: int, *, as_ids: bool = False) -> Request:
    return Request((_LOOK, Picture(*size, seed), _SAY), as_ids)


def _two(first: Picture, second: Picture) -> Request:
    return Request(("There are two: ", first, " is the first,\nand ", second, " is the second. Compare them."))


def _three(seed: int) -> Request:
    pictures = Picture(*WIDE, seed), Picture(*TALL, seed + 1), Picture(*LARGE, seed + 2)
    return Request(("First ", pictures[0], ", then ", pictures[1], ", then ", pictures[2], ". Describe each."))


def _one_each(request: Request) -> tuple[Request, ...]:
    """`request`, or as many as it has items, each with one of them and all of the text."""
    if len(request.items) < 2:
        return (request,)
    parts = request.parts
    kept = [index for index, part in enumerate(parts) if not isinstance(part, str)]
    return tuple(
        Request(
            tuple(part for at, part in enumerate(parts) if at == index or isinstance(part, str)),
            request.as_ids,
        )
        for index in kept
    )


def cases(family: Spec) -> tuple[Case, ...]:
    """The cases of `family`, named as in `CASE_NAMES`. Where a prompt takes one picture, a request with several is one for each,
    asked together."""
    made = _cases(family)
    if not family.headed:
        return made
    return tuple(
        replace(
            case, rounds=tuple(tuple(one for request in asked for one in _one_each(request)) for asked in case.rounds)
        )
        for case in made
    )


def _cases(family: Spec) -> tuple[Case, ...]:
    # Seeds differ between cases, so that nothing is in a cache that the case itself did not put there.
    return (
        Case(
            "text_only",
            "a prompt without items",
            ("C12",),
            ((Request(("What is the difference between a square and a circle?",)),),),
        ),
        Case("one_image", "one picture inside a text", ("C12",), ((_one(WIDE, 10),),)),
        Case("other_size", "another shape, so other counts", ("C12",), ((_one(TALL, 20),), (_one(LARGE, 21),))),
        Case("tiny_odd_size", "a picture smaller than a patch", ("C12",), ((_one(family.smallest_picture, 30),),)),
        Case("several_sizes", "three pictures of different sizes in one prompt", ("C4", "C8", "C12"), ((_three(40),),)),
        Case(
            "interleaved_sizes",
            "pictures of one size around one of another: grouping by size must not change their order",
            ("C8", "C9", "C12"),
            (
                (
                    Request(
                        (
                            "One ",
                            Picture(*WIDE, 45),
                            " two ",
                            Picture(*TALL, 46),
                            " three ",
                            Picture(*WIDE, 47),
                            " end.",
                        )
                    ),
                ),
            ),
        ),
        Case(
            "adjacent",
            "two pictures with nothing between them",
            ("C6", "C12"),
            ((Request(("Here: ", Picture(*WIDE, 50), Picture(*TALL, 51), " What changed?")),),),
        ),
        Case(
            "same_twice",
            "one picture at two places of one prompt",
            ("C2", "C6", "C12"),
            ((_two(Picture(*TALL, 60), Picture(*TALL, 60)),),),
        ),
        Case(
            "swapped",
            "two pictures, then the same two the other way round",
            ("C2", "C8", "C12"),
            (
                (_two(Picture(*WIDE, 70), Picture(*LARGE, 71)),),
                (_two(Picture(*LARGE, 71), Picture(*WIDE, 70)),),
            ),
        ),
        Case(
            "repeated",
            "the same request again: a cache hit",
            ("C2", "C12"),
            ((_three(80),), (_three(80),)),
        ),
        Case(
            "cached_beside_fresh",
            "a picture seen before beside a new one, in both orders",
            ("C1", "C2", "C8", "C12"),
            (
                (_one(WIDE, 90),),
                (_two(Picture(*WIDE, 90), Picture(*TALL, 91)),),
                (_two(Picture(*LARGE, 92), Picture(*WIDE, 90)),),
            ),
        ),
        Case(
            "together",
            "requests with pictures of different sizes, none and several at once",
            ("C1", "C8", "C9", "C12"),
            (
                (
                    _one(WIDE, 100),
                    _three(101),
                    Request(("Nothing to see here. Say something else.",)),
                    _one(LARGE, 105),
                    _two(Picture(*family.smallest_picture, 106), Picture(*TALL, 107)),
                    _one(WIDE, 108),
                ),
            ),
        ),
        Case(
            "token_ids",
            "the prompt as token ids, first with a new picture, then with one that the text form brought",
            ("C3", "C12"),
            (
                (_one(LARGE, 110, as_ids=True),),
                (_three(111),),
                (Request(_three(111).parts, as_ids=True),),
            ),
        ),
    )


CASE_NAMES = (
    "text_only",
    "one_image",
    "other_size",
    "tiny_odd_size",
    "several_sizes",
    "interleaved_sizes",
    "adjacent",
    "same_twice",
    "swapped",
    "repeated",
    "cached_beside_fresh",
    "together",
    "token_ids",
)
"""The names of these cases, in the order in which they are asked; the same for every family that takes pictures."""
