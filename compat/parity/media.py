"""The requests with videos and clips, as data, and which of all cases a family is asked.

Takes a spec; gives cases, and the reasons why a case cannot be held against transformers. Those with pictures alone
stand in `compat.parity.cases`.
"""

from collections.abc import Mapping

from compat.parity.cases import CASE_NAMES, Case, Clip, Item, Picture, Request, Video, cases
from compat.zoo import Spec

VIDEO_CASE_NAMES = (
    "one_video",
    "other_video",
    "two_videos",
    "repeated_video",
    "image_and_video",
)
CLIP_CASE_NAMES = (
    "one_clip",
    "other_length",
    "odd_lengths",
    "two_clips",
    "two_clips_of_one_length",
    "adjacent_clips",
    "repeated_clip",
    "clips_together",
    "image_and_clip",
)
WOVEN_CASE_NAMES = (
    "sound_of_video",
    "sounds_and_picture",
)
ALL_CASE_NAMES = (*CASE_NAMES, *VIDEO_CASE_NAMES, *CLIP_CASE_NAMES, *WOVEN_CASE_NAMES)
"""The names of all cases, in the order in which they are asked. No family is asked all of them."""

_ONE_CLIP_A_TEXT = "Got 1 text but 2 audio"

REFUSED: Mapping[str, str] = {
    "audioflamingo3": _ONE_CLIP_A_TEXT,
    "fun_asr_nano": _ONE_CLIP_A_TEXT,
    "glmasr": _ONE_CLIP_A_TEXT,
    "got_ocr2": "You must provide valid `images`",
    "musicflamingo": _ONE_CLIP_A_TEXT,
    "paligemma": "`images` are expected as arguments",
    "paligemma2": "`images` are expected as arguments",
    "qwen3_asr": _ONE_CLIP_A_TEXT,
}
"""Family to a part of the message with which its HF processor refuses several clips a text, or text alone. Such a refusal
makes a case not applicable; any other is an error."""

_MIXED = (
    "transformers pads the clips of a text to the longest and encodes the padding, so a clip's result hangs on others"
)

_FRAMES_AS_PICTURES = (
    "transformers gives a video's frames the tokens of pictures, then finds more of them than embeddings of the picture"
)


_LONGER = (
    "transformers pads the clips of a text to the longest, and the shorter one then has one embedding more than alone"
)

LEFT_OUT: Mapping[tuple[str, str], str] = {
    ("gemma3n", "two_clips"): _LONGER,
    ("gemma3n", "adjacent_clips"): _LONGER,
    ("granite_speech", "two_clips"): _MIXED,
    ("granite_speech", "adjacent_clips"): _MIXED,
    ("granite_speech_plus", "two_clips"): _MIXED,
    ("granite_speech_plus", "adjacent_clips"): _MIXED,
    # 1.9 s and 0.7 s: the shorter is less than a chunk of the tower's.
    ("qwen3_omni_moe", "adjacent_clips"): _LONGER,
    ("qwen3_omni_moe_thinker", "adjacent_clips"): _LONGER,
    ("phi4_multimodal_audio", "two_clips"): _MIXED,
    ("phi4_multimodal_audio", "adjacent_clips"): _MIXED,
    ("glm46v", "image_and_video"): _FRAMES_AS_PICTURES,
    ("glm4v", "image_and_video"): _FRAMES_AS_PICTURES,
    ("glm4v_moe", "image_and_video"): _FRAMES_AS_PICTURES,
    ("glm_ocr", "image_and_video"): _FRAMES_AS_PICTURES,
    ("smolvlm", "image_and_video"): _FRAMES_AS_PICTURES,
}
"""Family and case to the reason why it isn't asked: what transformers answers is no reference, or this package says at start
that it doesn't serve the modality."""

SHORT_VIDEO = (64, 48, 4)
OTHER_VIDEO = (48, 80, 4)
LONG_VIDEO = (112, 80, 8)
"""Width and height in pixels, number of frames. The first two have one length: many HF processors stack the frames of
several videos and take no others."""

ODD_LENGTHS = (0.7690625, 0.3337, 1.2811, 2.0513)
"""Seconds of clips. The first is 12,305 samples at 16 kHz: Gemma 4's processor pads them to 12,416, which is a frame more, and that
frame one embedding more than there are places."""


def _around(before: str, *items: Item) -> Request:
    """`items` with texts before, between and after them."""
    parts: list[str | Item] = [before]
    for item in items:
        parts += [item, " so far; go on "]
    return Request((*parts, "and say what it is, please."))


def all_cases(family: Spec) -> tuple[Case, ...]:
    """The cases of `family`: those with items that it takes, named and ordered as in `ALL_CASE_NAMES`."""
    found: tuple[Case, ...] = ()
    if "image" in family.placeholders:
        found += cases(family)
    if "video" in family.placeholders:
        found += _video_cases(family)
    if "audio" in family.placeholders:
        found += _clip_cases(family)
    if family.woven is not None:
        found += _woven_cases(family.woven)
    return found


def _woven_cases(option: str) -> tuple[Case, ...]:
    """Videos with their sound, which is longer or shorter than they are."""
    first = Request(("Watch ", Video(*SHORT_VIDEO, seed=400), Clip(2.6, 400), " and say what it is."), woven=option)
    both = Request(
        (
            "See ",
            Picture(64, 48, 410),
            " then ",
            Video(*LONG_VIDEO, seed=411),
            Clip(1.9, 411),
            " then ",
            Video(*SHORT_VIDEO, seed=400),
            Clip(2.6, 400),
            " and say what it is.",
        ),
        woven=option,
    )
    return (
        Case(
            "sound_of_video",
            "a video and its sound, woven into one another; then a cache hit",
            ("C1", "C2", "C6", "C12"),
            ((first,), (first,)),
        ),
        Case(
            "sounds_and_picture",
            "a picture and two videos with their sounds, one of them seen before; then both requests at once",
            ("C1", "C2", "C8", "C12"),
            ((first,), (both,), (both, first)),
        ),
    )


def _video_cases(family: Spec) -> tuple[Case, ...]:
    found: tuple[Case, ...] = (
        Case("one_video", "one video inside a text", ("C12",), ((_around("Watch ", Video(*SHORT_VIDEO, seed=200)),),)),
        Case(
            "other_video",
            "another size and length, so other counts",
            ("C12",),
            ((_around("Watch ", Video(*LONG_VIDEO, seed=210)),),),
        ),
        Case(
            "two_videos",
            "two videos of different sizes with text between",
            ("C4", "C8", "C12"),
            ((_around("Watch ", Video(*SHORT_VIDEO, seed=220), Video(*OTHER_VIDEO, seed=221)),),),
        ),
        Case(
            "repeated_video",
            "the same request again: a cache hit",
            ("C2", "C12"),
            ((_around("Watch ", Video(*OTHER_VIDEO, seed=230)),),) * 2,
        ),
    )
    if "image" in family.placeholders:
        found += (
            Case(
                "image_and_video",
                "a picture and a video in one prompt",
                ("C5", "C6", "C12"),
                ((_around("See ", Picture(64, 48, 240), Video(*SHORT_VIDEO, seed=241)),),),
            ),
        )
    return found


def _clip_cases(family: Spec) -> tuple[Case, ...]:
    found: tuple[Case, ...] = (
        Case("one_clip", "one clip inside a text", ("C12",), ((_around("Hear ", Clip(1.3, 300)),),)),
        Case(
            "other_length",
            "shorter and longer clips, so other counts",
            ("C12",),
            ((_around("Hear ", Clip(0.7, 310)),), (_around("Hear ", Clip(2.6, 311)),)),
        ),
        Case(
            "odd_lengths",
            "clips that fill no block of samples, frames or windows: padded alone, and the padding gives no embedding",
            ("C4", "C12"),
            tuple((_around("Hear ", Clip(seconds, 360 + n)),) for n, seconds in enumerate(ODD_LENGTHS)),
        ),
        Case(
            "two_clips",
            "two clips of different lengths with text between",
            ("C4", "C8", "C12"),
            ((_around("Hear ", Clip(1.3, 320), Clip(1.9, 321)),),),
        ),
        Case(
            "two_clips_of_one_length",
            "two clips of one length with text between: none is padded",
            ("C4", "C8", "C12"),
            ((_around("Hear ", Clip(1.3, 330), Clip(1.3, 331)),),),
        ),
        Case(
            "adjacent_clips",
            "two clips with nothing between them",
            ("C6", "C12"),
            ((Request(("Hear: ", Clip(1.9, 340), Clip(0.7, 341), " What changed?")),),),
        ),
        Case(
            "repeated_clip",
            "the same request again: a cache hit",
            ("C2", "C12"),
            ((_around("Hear ", Clip(1.3, 350)),),) * 2,
        ),
        Case(
            "clips_together",
            "three requests with clips of different lengths at once",
            ("C1", "C8", "C9", "C12"),
            (tuple(_around("Hear ", Clip(seconds, 360)) for seconds in (1.3, 0.7, 1.9)),),
        ),
    )
    if "image" in family.placeholders:
        found += (
            Case(
                "image_and_clip",
                "a picture and a clip in one prompt",
                ("C5", "C6", "C12"),
                ((_around("Take ", Picture(64, 48, 370), Clip(0.7, 371)),),),
            ),
        )
    return found
