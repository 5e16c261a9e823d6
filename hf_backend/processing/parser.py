"""vLLM's parser of multimodal data, set up by what a processor wants.

Every video becomes a pair of frames and metadata, which may be empty: vLLM's own parser either demands metadata or loses it
when it asks the cache.
"""

from typing import Any

from hf_backend.upstream import MultiModalDataParser


class DataParser(MultiModalDataParser):
    """Keeps a video's metadata beside its frames."""

    def _get_video_with_metadata(self, video: Any) -> tuple[Any, dict[str, Any]]:
        frames, metadata = super()._get_video_with_metadata(video)
        return frames, metadata or {}
