"""vLLM's processing info, answered from measurements.

Takes vLLM's processing context; gives modalities, limits, the largest item and `alone` to the rest of the room. Depends on
no optional helper of the HF processor.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from transformers import AutoTokenizer

from hf_backend import modalities
from hf_backend.errors import RequestError, UnsupportedModelError
from hf_backend.probe.alone import Alone
from hf_backend.probe.parts import sampling_rate
from hf_backend.probe.profile import STRATEGIES, profile_of
from hf_backend.probe.samples import LARGE, SMALL, blank, clips_of_many_lengths, samples
from hf_backend.probe.sizes import (
    Count,
    LargestItem,
    Size,
    agrees,
    climb,
    clip_steps,
    fine_sizes,
    helper_count,
    largest,
    of_every_aspect,
    picture_steps,
    video_steps,
)
from hf_backend.probe.woven import Weave, find_weave
from hf_backend.processing.embeddings import EmbeddingsRule
from hf_backend.processing.parser import DataParser
from hf_backend.processing.text_only import read_tail, with_tail
from hf_backend.records import Item, ModalityProfile, ProcessorProfile
from hf_backend.upstream import BaseProcessingInfo, MultiModalDataParser, TokenizeParams

PROBE_SIZES: tuple[Size, ...] = (SMALL, LARGE, (500, 300), (320, 640))
"""Sizes on which a processor's own counter has to agree with the measurement before it is used."""


@functools.cache
def own_tokenizer(name: str, revision: str | None, trust_remote_code: bool) -> Any:
    """The checkpoint's tokenizer, for an engine that was started without one (`skip_tokenizer_init`): HF processors can't be
    made without, and placeholders are found by it. Requests still have to be token ids; vLLM refuses text by itself."""
    return AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=trust_remote_code)


class ProcessingInfo(BaseProcessingInfo):
    """What vLLM asks about a model's multimodal inputs."""

    def __init__(self, ctx: Any) -> None:
        if ctx.tokenizer is None:
            config = ctx.model_config
            tokenizer = own_tokenizer(config.tokenizer, config.tokenizer_revision, config.trust_remote_code)
            ctx = dataclasses.replace(ctx, tokenizer=tokenizer)
        super().__init__(ctx)

    @property
    def profile(self) -> ProcessorProfile:
        """What was measured of the HF processor. Raises `UnsupportedModelError` on first use if it can't be served."""
        return profile_of(self)

    def modality_profile(self, modality: str) -> ModalityProfile:
        """The measurement for one modality; `RequestError` if the model isn't served with it."""
        try:
            return self.profile.modalities[modality]
        except KeyError:
            raise RequestError(
                self.profile.processor_class,
                found=f"an item of modality {modality}",
                expected=f"one of {sorted(self.profile.modalities)}",
                do=self.profile.refused.get(modality, f"The processor has no part for {modality}."),
            ) from None

    def alone(self, modality: str) -> Alone:
        """`alone(item)` for one modality."""
        profile = self.modality_profile(modality)
        return Alone(
            info=self,
            modality=dataclasses.replace(modalities.get(modality), nested=profile.nested),
            strategy=STRATEGIES[profile.strategy],
            placeholder=profile.text,
            embed_ids=profile.embed_ids,
            text_fields=profile.text_fields,
        )

    def probe_items(self, modality: str) -> list[Item]:
        """The two small items that processors are measured with, as this one makes them."""
        alone = self.alone(modality)
        return [alone(item, {}) for item in samples(modality, sampling_rate(self.get_hf_processor()))]

    def clips_of_many_lengths(self) -> list[Item]:
        """Clips whose lengths leave every remainder when a tower halves them."""
        alone = self.alone("audio")
        return [alone(item, {}) for item in clips_of_many_lengths(sampling_rate(self.get_hf_processor()))]

    @functools.lru_cache(maxsize=8)  # noqa: B019 - infos live as long as the process
    def embeddings_rule(self, modality: str) -> EmbeddingsRule:
        """What pre-computed embeddings of one modality have to come with."""
        return EmbeddingsRule.of(self.probe_items(modality), self.ctx.model_config.uses_mrope)

    @functools.lru_cache(maxsize=8)  # noqa: B019 - infos live as long as the process
    def weave(self, option: str) -> Weave:
        """How the processor weaves two items when told `option`. Raises `RequestError` where it doesn't."""
        return find_weave(self, self.profile, option)

    def get_default_tok_params(self) -> TokenizeParams:
        """How vLLM makes ids of a prompt's text: with what the HF processor puts behind a text alone."""
        if self.ctx.model_config.skip_tokenizer_init:
            return super().get_default_tok_params()
        tail = read_tail(self.get_hf_processor(), self.get_tokenizer())
        return with_tail(super().get_default_tok_params(), tail)

    def get_data_parser(self) -> MultiModalDataParser:
        """Clips come mono at the extractor's rate, videos with their metadata."""
        return DataParser(
            target_sr=sampling_rate(self.get_hf_processor()),
            target_channels=1,
            video_needs_metadata=True,
            expected_hidden_size=self._get_expected_hidden_size(),
        )

    def get_supported_mm_limits(self) -> Mapping[str, int | None]:
        """Modalities served, in any number: items are processed one by one, also where the processor takes one a prompt. One
        where it says itself where the item goes."""
        return {name: 1 if profile.headed else None for name, profile in self.profile.modalities.items()}

    def get_mm_max_tokens_per_item(self, seq_len: int, mm_counts: Mapping[str, int]) -> Mapping[str, int]:
        """Embeddings of the largest item of each modality asked for that fits `seq_len` tokens."""
        return {
            name: self.largest_item(name, seq_len).num_embeds for name in self.profile.modalities if mm_counts.get(name)
        }

    @functools.lru_cache(maxsize=8)  # noqa: B019 - infos live as long as the process
    def largest_item(self, modality: str, limit: int) -> LargestItem:
        """The item with the most embeddings whose expansion is at most `limit` tokens; measured, not asked for."""
        alone = self.alone(modality)

        @functools.cache
        def count(size: Size) -> tuple[int, int] | None:
            try:
                expansion = alone(blank(modality, size), {}).expansion
            except RequestError:
                return None
            return len(expansion.ids), expansion.num_embeds

        found: LargestItem | None = None
        steps = {"image": picture_steps(), "video": video_steps()}.get(
            modality, clip_steps(sampling_rate(self.get_hf_processor()))
        )
        helper = helper_count(self.get_hf_processor())
        if modality == "image" and agrees(helper, count, PROBE_SIZES):
            by_helper = largest(fine_sizes(), lambda size: None if (n := helper(size)) is None else (n, n), limit)
            counted = None if by_helper is None else count(by_helper.size)
            # Measured once more at the size chosen, where a helper that was right on small pictures may be wrong.
            if by_helper is not None and counted is not None and counted[1] == by_helper.num_embeds:
                found = LargestItem(by_helper.size, *counted) if counted[0] <= limit else None
        found = found or climb(steps, count, limit)
        if found is None:
            raise UnsupportedModelError(
                self.profile.processor_class,
                found=f"no {modality} between {steps[0][0]} and {steps[-1][-1]} in size that it processes",
                expected="at least one",
                do="Check the size options in its preprocessor config and in mm_processor_kwargs.",
            )
        return found if modality == "audio" else self._best_aspect(found, count, limit)

    def _best_aspect(self, found: LargestItem, count: Count, limit: int) -> LargestItem:
        """The largest of about the size of `found`, whatever its aspect. Aspects of a video are tried with two frames."""
        width, height, *frames = found.size
        few = [min(2, number) for number in frames]
        sizes = [(*size, *few) for size in of_every_aspect(width, height)]
        best = largest(sizes, count, limit)
        counted = None if best is None else count((*best.size[:2], *frames))
        if best is None or counted is None or counted[0] > limit or counted[1] <= found.num_embeds:
            return found
        return LargestItem((*best.size[:2], *frames), *counted)
