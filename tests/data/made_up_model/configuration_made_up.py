"""Config of a model that nobody has seen: a text model of transformers' between two towers of its own."""

from transformers import AutoConfig, PretrainedConfig


class MadeUpConfig(PretrainedConfig):
    model_type = "made_up"
    sub_configs = {"text_config": AutoConfig}

    def __init__(
        self,
        text_config=None,
        patch_size=16,
        frame_size=200,
        tower_hidden_size=1024,
        tower_num_heads=8,
        tower_num_layers=12,
        picture_token_id=0,
        sound_token_id=0,
        **kwargs,
    ):
        if isinstance(text_config, dict):
            text_config = AutoConfig.for_model(**text_config)
        self.text_config = text_config if text_config is not None else AutoConfig.for_model("llama")
        self.patch_size = patch_size
        self.frame_size = frame_size
        self.tower_hidden_size = tower_hidden_size
        self.tower_num_heads = tower_num_heads
        self.tower_num_layers = tower_num_layers
        self.image_token_id = picture_token_id
        self.audio_token_id = sound_token_id
        self.picture_token_id = picture_token_id
        self.sound_token_id = sound_token_id
        super().__init__(**kwargs)
