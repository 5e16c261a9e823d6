"""Dummy inputs for vLLM's memory profiling: items of the largest measured size, with the measured placeholder."""

from collections.abc import Mapping

from hf_backend.processing.info import ProcessingInfo
from hf_backend.upstream import BaseDummyInputsBuilder, MultiModalDataBuiltins, MultiModalDataDict


class DummyInputsBuilder(BaseDummyInputsBuilder[ProcessingInfo]):
    """Builds what vLLM profiles with."""

    def get_dummy_text(self, mm_counts: Mapping[str, int]) -> str:
        """One placeholder for each item, kept apart by spaces for tokenizers that would merge two."""
        placeholders = [
            profile.placeholder
            for name, profile in self.info.profile.modalities.items()
            for _ in range(mm_counts.get(name, 0))
        ]
        return " ".join(placeholders)

    def get_dummy_mm_data(
        self, seq_len: int, mm_counts: Mapping[str, int], mm_options: Mapping[str, object] | None = None
    ) -> MultiModalDataDict:
        """Pictures of the largest size that fits `seq_len`; `mm_options` may only shrink them (vLLM's rule)."""
        data = MultiModalDataBuiltins()
        if num_images := mm_counts.get("image", 0):
            width, height = self.info.largest_image(self.info.ctx.model_config.max_model_len).size
            data["image"] = self._get_dummy_images(
                width=width, height=height, num_images=num_images, overrides=(mm_options or {}).get("image")
            )
        return data
