"""One table of what differs between modalities: the names that vLLM and transformers give to the same thing.

Takes nothing; gives `MODALITIES` and `get`. Not for what differs between models: that is measured (`hf_backend.probe`).
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Modality:
    """The names belonging to one modality."""

    name: str
    """vLLM's name of the modality, also the `type` of a processor's text replacement offsets."""
    processor_argument: str
    """The argument of `ProcessorMixin.__call__` that takes the items."""
    sub_processors: tuple[str, ...]
    """Attributes of a processor one of which holds the part that handles this modality."""
    placeholder_attributes: tuple[str, ...]
    """Attributes of a processor that may hold the text standing for one item, likeliest first."""
    wrapping_attributes: tuple[tuple[str, str], ...]
    """Attribute pairs that may hold texts to put around the placeholder. HunYuan-VL rejects a bare image token."""
    token_id_attributes: tuple[str, ...]
    """Attributes of a config or processor that may hold the id of the tokens that embeddings replace."""
    marker_id_attributes: tuple[str, ...]
    """Attributes of a config that may hold the ids of tokens around and between those, which embeddings replace as well.
    The model isn't there yet when a prompt is put together; that it replaces no others is measured once it is."""
    features_methods: tuple[str, ...]
    """Methods of an HF model that may run the encoder and the connector, the modality's own first."""
    token_type_id: int
    """What HF's `mm_token_type_ids` hold where this modality's embeddings go (`ProcessorMixin.create_mm_token_type_ids`)."""
    nested: bool = False
    """Whether the processor takes a list of items for each prompt (SmolVLM's videos) rather than one list of all items. No fact
    of the modality but of a processor: the probe sets it."""


IMAGE = Modality(
    name="image",
    processor_argument="images",
    sub_processors=("image_processor",),
    placeholder_attributes=("image_token", "boi_token"),
    wrapping_attributes=(("image_start_token", "image_end_token"),),
    token_id_attributes=("image_token_id", "image_token_index"),
    # Ovis2: start, separators and end of a picture's tiles.
    marker_id_attributes=("visual_indicator_token_ids",),
    features_methods=("get_image_features",),
    token_type_id=1,
)

VIDEO = Modality(
    name="video",
    processor_argument="videos",
    sub_processors=("video_processor",),
    placeholder_attributes=("video_token",),
    wrapping_attributes=(("vision_bos_token", "vision_eos_token"),),
    # InternVL has no video token of its own in the model: a video's frames use the image token.
    token_id_attributes=("video_token_id", "video_token_index", "image_token_id", "image_token_index"),
    marker_id_attributes=(),
    # InternVL's model knows pictures only: a video's frames are pictures to it.
    features_methods=("get_video_features", "get_image_features"),
    token_type_id=2,
)

AUDIO = Modality(
    name="audio",
    processor_argument="audio",
    # `feature_extractor` becomes `audio_processor` in later releases (transformers PR 44394).
    sub_processors=("audio_processor", "feature_extractor"),
    placeholder_attributes=("audio_token", "boa_token"),
    wrapping_attributes=(("audio_bos_token", "audio_eos_token"),),
    token_id_attributes=("audio_token_id", "audio_token_index"),
    marker_id_attributes=(),
    features_methods=("get_audio_features",),
    token_type_id=3,
)

WEAVING: Mapping[str, tuple[str, str]] = {"use_audio_in_video": ("video", "audio")}
"""Option of an HF processor under which the tokens of an item of the first modality and of one of the second are woven into one
another, to the two modalities: the sound of a video (Qwen's Omnis). vLLM's chat reads the option too, and sends the sound along."""

MODALITIES: tuple[Modality, ...] = (IMAGE, VIDEO, AUDIO)
"""Every modality of a multimodal model; which of them a model is served with is measured."""

_BY_NAME = {modality.name: modality for modality in MODALITIES}


def get(name: str) -> Modality:
    """The row of modality `name`; `KeyError` if there is none."""
    return _BY_NAME[name]
