"""vLLM's processing info, answered from measurements.

Takes vLLM's processing context; gives modalities, limits, the largest item and `alone` to the rest of the room. Depends
on no optional helper of the HF processor.
"""

import functools
from collections.abc import Mapping

from PIL import Image

from hf_backend import modalities
from hf_backend.errors import RequestError, UnsupportedModelError
from hf_backend.probe.alone import Alone
from hf_backend.probe.profile import STRATEGIES, profile_of
from hf_backend.probe.samples import LARGE, SMALL
from hf_backend.probe.sizes import LargestItem, Size, agrees, fine_sizes, helper_count, largest, largest_measured
from hf_backend.records import ModalityProfile, ProcessorProfile
from hf_backend.upstream import BaseProcessingInfo

PROBE_SIZES: tuple[Size, ...] = (SMALL, LARGE, (500, 300), (320, 640))
"""Sizes on which a processor's own counter has to agree with the measurement before it is used."""


class ProcessingInfo(BaseProcessingInfo):
    """What vLLM asks about a model's multimodal inputs."""

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
                do=self.profile.refused.get(modality, f"{modality} is not part of this version."),
            ) from None

    def alone(self, modality: str) -> Alone:
        """`alone(item)` for one modality."""
        profile = self.modality_profile(modality)
        return Alone(
            info=self,
            modality=modalities.get(modality),
            strategy=STRATEGIES[profile.strategy],
            placeholder=profile.placeholder,
            embed_ids=profile.embed_ids,
            text_fields=profile.text_fields,
        )

    def get_supported_mm_limits(self) -> Mapping[str, int | None]:
        """Modalities served; without a limit of ours, except where the processor takes one item a prompt."""
        return {name: None if profile.joinable else 1 for name, profile in self.profile.modalities.items()}

    def get_mm_max_tokens_per_item(self, seq_len: int, mm_counts: Mapping[str, int]) -> Mapping[str, int]:
        """Embeddings of the largest item of each modality that fits `seq_len` tokens."""
        return {name: self.largest_image(seq_len).num_embeds for name in self.profile.modalities if name == "image"}

    @functools.lru_cache(maxsize=4)  # noqa: B019 - infos live as long as the process
    def largest_image(self, limit: int) -> LargestItem:
        """The picture with the most embeddings whose expansion is at most `limit` tokens; measured, not asked for."""

        @functools.cache
        def count(size: Size) -> tuple[int, int] | None:
            try:
                expansion = self.alone("image")(Image.new("RGB", size, color=(255, 255, 255)), {}).expansion
            except RequestError:
                return None
            return len(expansion.ids), expansion.num_embeds

        found: LargestItem | None = None
        helper = helper_count(self.get_hf_processor(), self.ctx.get_merged_mm_kwargs({}))
        if agrees(helper, count, PROBE_SIZES):
            by_helper = largest(fine_sizes(), lambda size: None if (n := helper(size)) is None else (n, n), limit)
            counted = None if by_helper is None else count(by_helper.size)
            # Measured once more at the size chosen, where a helper that was right on small pictures may be wrong.
            if by_helper is not None and counted is not None and counted[1] == by_helper.num_embeds:
                found = LargestItem(by_helper.size, *counted) if counted[0] <= limit else None
        found = found or largest_measured(count, limit)
        if found is None:
            raise UnsupportedModelError(
                self.profile.processor_class,
                found="no picture from 64 to 2048 pixels a side that it processes",
                expected="at least one",
                do="Check the size options in its preprocessor config and in mm_processor_kwargs.",
            )
        return found
