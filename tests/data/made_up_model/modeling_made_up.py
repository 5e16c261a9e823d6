"""The made-up model: attention over the patches of each picture, a convolution over the frames of each clip."""

import torch
from torch import nn
from torch.nn import functional
from transformers import AutoModel, GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast, BaseModelOutputWithPooling, CausalLMOutputWithPast

from .configuration_made_up import MadeUpConfig


class MadeUpBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.tower_hidden_size
        self.heads = config.tower_num_heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, hidden):
        query, key, value = self.qkv(self.norm(hidden)).unflatten(-1, (3, self.heads, -1)).permute(1, 2, 0, 3)
        seen = functional.scaled_dot_product_attention(query[None], key[None], value[None])[0]
        hidden = hidden + self.out(seen.transpose(0, 1).flatten(1))
        return hidden + self.mlp(hidden)


class MadeUpEyes(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Linear(3 * config.patch_size**2, config.tower_hidden_size)
        self.rows = nn.Embedding(64, config.tower_hidden_size)
        self.columns = nn.Embedding(64, config.tower_hidden_size)
        self.blocks = nn.ModuleList(MadeUpBlock(config) for _ in range(config.tower_num_layers))
        self.connector = nn.Linear(config.tower_hidden_size, config.text_config.hidden_size)

    def forward(self, patches, grid):
        seen = []
        sizes = grid.tolist()
        for own, (rows, columns) in zip(patches.split([rows * columns for rows, columns in sizes]), sizes, strict=True):
            row = torch.arange(rows, device=own.device).repeat_interleave(columns)
            column = torch.arange(columns, device=own.device).repeat(rows)
            hidden = self.embed(own) + self.rows(row) + self.columns(column)
            for block in self.blocks:
                hidden = block(hidden)
            seen.append(self.connector(hidden))
        return seen


class MadeUpEars(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Linear(config.frame_size, config.tower_hidden_size)
        self.mix = nn.Conv1d(config.tower_hidden_size, config.tower_hidden_size, 3, padding=1)
        self.connector = nn.Linear(config.tower_hidden_size, config.text_config.hidden_size)

    def forward(self, frames, counts):
        heard = []
        for own in frames.split(counts.tolist()):
            hidden = self.embed(own)
            hidden = hidden + functional.gelu(self.mix(hidden.T[None]))[0].T
            heard.append(self.connector(hidden))
        return heard


class MadeUpPreTrainedModel(PreTrainedModel):
    config_class = MadeUpConfig
    base_model_prefix = "model"
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_attention_backend = True


class MadeUpModel(MadeUpPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.language_model = AutoModel.from_config(config.text_config)
        self.eyes = MadeUpEyes(config)
        self.ears = MadeUpEars(config)
        self.post_init()

    def get_input_embeddings(self):
        return self.language_model.get_input_embeddings()

    def set_input_embeddings(self, value):
        self.language_model.set_input_embeddings(value)

    def get_image_features(self, patches, patch_grid, **kwargs):
        return BaseModelOutputWithPooling(pooler_output=self.eyes(patches, patch_grid))

    def get_audio_features(self, frames, frame_counts, **kwargs):
        return BaseModelOutputWithPooling(pooler_output=self.ears(frames, frame_counts))

    def forward(
        self,
        input_ids=None,
        patches=None,
        patch_grid=None,
        frames=None,
        frame_counts=None,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        inputs_embeds=None,
        **kwargs,
    ):
        if inputs_embeds is None:
            inputs_embeds = self.get_input_embeddings()(input_ids)
        if patches is not None:
            seen = torch.cat(self.get_image_features(patches, patch_grid).pooler_output)
            place = (input_ids == self.config.picture_token_id)[..., None].expand_as(inputs_embeds)
            inputs_embeds = inputs_embeds.masked_scatter(place, seen.to(inputs_embeds.dtype))
        if frames is not None:
            heard = torch.cat(self.get_audio_features(frames, frame_counts).pooler_output)
            place = (input_ids == self.config.sound_token_id)[..., None].expand_as(inputs_embeds)
            inputs_embeds = inputs_embeds.masked_scatter(place, heard.to(inputs_embeds.dtype))
        return self.language_model(
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            **kwargs,
        )


class MadeUpForConditionalGeneration(MadeUpPreTrainedModel, GenerationMixin):
    def __init__(self, config):
        super().__init__(config)
        self.model = MadeUpModel(config)
        self.lm_head = nn.Linear(config.text_config.hidden_size, config.text_config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self):
        return self.model.get_input_embeddings()

    def get_decoder(self):
        return self.model.language_model

    # All inputs by name once more: `generate` refuses those that the signature of the class with the head lacks.
    def forward(
        self,
        input_ids=None,
        patches=None,
        patch_grid=None,
        frames=None,
        frame_counts=None,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        inputs_embeds=None,
        logits_to_keep=0,
        **kwargs,
    ):
        output: BaseModelOutputWithPast = self.model(
            input_ids=input_ids,
            patches=patches,
            patch_grid=patch_grid,
            frames=frames,
            frame_counts=frame_counts,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            **kwargs,
        )
        keep = slice(-logits_to_keep, None) if logits_to_keep else slice(None)
        return CausalLMOutputWithPast(
            logits=self.lm_head(output.last_hidden_state[:, keep]), past_key_values=output.past_key_values
        )

    def prepare_inputs_for_generation(self, input_ids, past_key_values=None, **kwargs):
        inputs = super().prepare_inputs_for_generation(input_ids, past_key_values=past_key_values, **kwargs)
        if past_key_values is not None and past_key_values.get_seq_length() > 0:
            for name in ("patches", "patch_grid", "frames", "frame_counts"):
                inputs[name] = None
        return inputs
