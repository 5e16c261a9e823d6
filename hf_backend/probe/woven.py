"""Two items whose tokens a processor weaves into one another: a video and its sound.

Takes an option of the processor (`hf_backend.modalities.WEAVING`); gives the text that stands for both items in a prompt, and the
ids that take its place for any two. How they are woven follows from both; the processor alone knows, so it is asked anew for every
pair. Not for the items' fields: those are what they are alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from hf_backend import modalities
from hf_backend.errors import RequestError
from hf_backend.probe import calls
from hf_backend.probe.alone import PROCESSOR_ERRORS, describe
from hf_backend.probe.arguments import arguments
from hf_backend.probe.parts import rate_options, sampling_rate
from hf_backend.probe.profile import candidates
from hf_backend.probe.samples import samples
from hf_backend.records import ProcessorProfile

if TYPE_CHECKING:
    from hf_backend.upstream import BaseProcessingInfo


@dataclass(frozen=True, slots=True)
class Weave:
    """How a processor wants two items to be asked for, to weave them."""

    option: str
    modalities: tuple[str, str]
    text: str
    """What stands for both in a prompt (the Omnis: a video's placeholder within its markers)."""
    target_ids: tuple[int, ...]
    """Its ids."""
    markers: tuple[tuple[int, ...], tuple[int, ...]]
    """Ids of the markers before and behind an item of the second modality, where the processor has such."""

    def ids(
        self, info: "BaseProcessingInfo", items: tuple[object, object], hf_kwargs: Mapping[str, object]
    ) -> list[int]:
        """The ids that take the place of `target_ids` for `items`, one of each modality. Raises `RequestError` where the
        processor fails on the two."""
        data: dict[str, object] = {"text": self.text}
        defaults: dict[str, object] = {}
        for name, item in zip(self.modalities, items, strict=True):
            modality = modalities.get(name)
            given, options = arguments(modality, [item])
            data |= given
            defaults |= options | rate_options(info.get_hf_processor(), modality)
        try:
            output = calls.call(info, data, {**hf_kwargs, self.option: True}, defaults)
        except PROCESSOR_ERRORS as error:
            cause = error.__cause__ or error
            raise RequestError(
                type(info.get_hf_processor()).__name__,
                found=f"{' and '.join(map(describe, items))}, on which it failed with {type(cause).__name__}: {cause}",
                expected=f"a {self.modalities[0]} and {self.modalities[1]} that it can weave ({self.option})",
                do=f"Send others, or leave {self.option} out of mm_processor_kwargs.",
            ) from error
        return torch.as_tensor(output["input_ids"]).flatten().tolist()


def find_weave(info: "BaseProcessingInfo", profile: ProcessorProfile, option: str) -> Weave:
    """The text for which the processor, told `option`, is seen to put the tokens of both of two items in place.

    Raises `RequestError` where there is none: the option is a request's.
    """
    names = modalities.WEAVING[option]
    processor, tokenizer = info.get_hf_processor(), info.get_tokenizer()
    if all(name in profile.modalities for name in names):
        first, second = (samples(name, sampling_rate(processor))[0] for name in names)
        markers = _markers(processor, tokenizer, names[1])
        # With its markers first: where a processor wants them, it leaves a text without them as it is.
        for text in reversed(list(dict.fromkeys(candidates(processor, modalities.get(names[0]))))):
            weave = Weave(option, names, text, tuple(tokenizer.encode(text, add_special_tokens=False)), markers)
            try:
                ids = weave.ids(info, (first, second), {})
            except RequestError:
                continue
            if all(any(token in profile.modalities[name].embed_ids for token in ids) for name in names):
                return weave
    raise RequestError(
        type(processor).__name__,
        found=f"mm_processor_kwargs with {option}",
        expected=f"a processor that weaves {names[1]} into {names[0]}",
        do="This one doesn't; leave the option out, and give each item a placeholder.",
    )


def _markers(processor: Any, tokenizer: Any, modality: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    for names in modalities.get(modality).wrapping_attributes:
        texts = [getattr(processor, name, None) for name in names]
        if None not in texts:
            head, tail = (tuple(tokenizer.encode(str(text), add_special_tokens=False)) for text in texts)
            return head, tail
    return (), ()
