"""Dummy inputs for vLLM's memory profiling: items of the largest measured size, with the measured placeholder."""

from collections.abc import Mapping
from typing import Any

from hf_backend.probe.samples import metadata
from hf_backend.processing.info import ProcessingInfo
from hf_backend.upstream import BaseDummyInputsBuilder, MultiModalDataBuiltins, MultiModalDataDict


class DummyInputsBuilder(BaseDummyInputsBuilder[ProcessingInfo]):
    """Builds what vLLM profiles with."""

    def get_dummy_text(self, mm_counts: Mapping[str, int]) -> str:
        """One placeholder for each item, kept apart by spaces for tokenizers that would merge two."""
        placeholders = [
            profile.text
            for name, profile in self.info.profile.modalities.items()
            for _ in range(mm_counts.get(name, 0))
        ]
        return " ".join(placeholders)

    def get_dummy_mm_data(
        self, seq_len: int, mm_counts: Mapping[str, int], mm_options: Mapping[str, Any] | None = None
    ) -> MultiModalDataDict:
        """Items of the largest size that fits the model's length; `mm_options` may only shrink them (vLLM's rule)."""
        data = MultiModalDataBuiltins()
        options = mm_options or {}
        limit = self.info.ctx.model_config.max_model_len
        for name in self.info.profile.modalities:
            num_items = mm_counts.get(name, 0)
            if num_items == 0:
                continue
            size = self.info.largest_item(name, limit).size
            if name == "image":
                data["image"] = self._get_dummy_images(
                    width=size[0], height=size[1], num_images=num_items, overrides=options.get("image")
                )
            elif name == "video":
                videos = self._get_dummy_videos(
                    width=size[0],
                    height=size[1],
                    num_frames=size[2],
                    num_videos=num_items,
                    overrides=options.get("video"),
                )
                data["video"] = [(video, metadata(len(video))) for video in videos]
            else:
                data["audio"] = self._get_dummy_audios(
                    length=size[0], num_audios=num_items, overrides=options.get("audio")
                )
        return data
