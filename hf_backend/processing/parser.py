"""vLLM's parser of multimodal data, set up by what a processor wants.

Every video becomes a pair of frames and metadata, which may be empty: vLLM's own parser either demands metadata or loses it
when it asks the cache. A dictionary of embeddings and fields becomes one mapping an item.
"""

from collections.abc import Mapping
from typing import Any

from hf_backend.processing.embeddings import split_fields
from hf_backend.upstream import DictEmbeddingItems, ModalityDataItems, MultiModalDataParser


class EmbeddingsWithFields(DictEmbeddingItems):
    """Embeddings that come with fields, one mapping an item. vLLM refuses its kind where it isn't told to take embeddings."""

    def __init__(self, data: Mapping[str, Any], modality: str) -> None:
        ModalityDataItems.__init__(self, data, modality)
        self._items = split_fields(data, modality)

    def get_count(self) -> int:
        """How many items there are."""
        return len(self._items)

    def get(self, index: int) -> Mapping[str, Any]:
        """One item's embeddings and fields, also what it is known by in the cache."""
        return self._items[index]


class DataParser(MultiModalDataParser):
    """Keeps a video's metadata beside its frames."""

    def _get_video_with_metadata(self, video: Any) -> tuple[Any, dict[str, Any]]:
        frames, metadata = super()._get_video_with_metadata(video)
        return frames, metadata or {}

    def _parse_image_data(self, data: Any) -> Any:
        return EmbeddingsWithFields(data, "image") if isinstance(data, Mapping) else super()._parse_image_data(data)

    def _parse_video_data(self, data: Any) -> Any:
        return EmbeddingsWithFields(data, "video") if isinstance(data, Mapping) else super()._parse_video_data(data)

    def _parse_audio_data(self, data: Any) -> Any:
        return EmbeddingsWithFields(data, "audio") if isinstance(data, Mapping) else super()._parse_audio_data(data)
