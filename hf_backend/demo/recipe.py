"""What the demo model is made of: tokenizer, chat template, processor, config.

Takes nothing; gives a processor and an untrained Qwen2-VL-shaped model, the same in every process for one seed. Not for
training it (`train`).
"""

from typing import Any

from hf_backend.demo.digits import QUESTION, WORDS

PATCH = 8
MERGE = 2
UNIT = PATCH * MERGE
"""Pixels along a side of one embedding. All canvases are multiples of it, so the processor never resizes a picture."""

END_OF_TEXT, TURN, END_OF_TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
VISION_START, VISION_END = "<|vision_start|>", "<|vision_end|>"
IMAGE, VIDEO = "<|image_pad|>", "<|video_pad|>"
SPECIAL_TOKENS = (END_OF_TEXT, TURN, END_OF_TURN, VISION_START, VISION_END, IMAGE, VIDEO)
"""Qwen2-VL's own."""

VOCABULARY = 320
"""256 bytes, so that any text can be sent, and a few merges: the words of the task are one token each."""

MAX_POSITIONS = 512
INITIAL_SPREAD = 0.06
"""Standard deviation of untrained weights. The usual 0.02 is made for wide models; with it this one learns nothing for
the first 100 steps, and with a high learning rate for the first 600."""

CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message['role'] + '\\n' }}"
    "{%- if message['content'] is string %}{{- message['content'] }}"
    "{%- else %}{%- for part in message['content'] %}"
    "{%- if part['type'] in ('image', 'image_url') or 'image' in part or 'image_url' in part %}"
    "{{- '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{%- elif part['type'] == 'video' or 'video' in part %}{{- '<|vision_start|><|video_pad|><|vision_end|>' }}"
    "{%- elif 'text' in part %}{{- part['text'] }}"
    "{%- endif %}{%- endfor %}{%- endif %}"
    "{{- '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
"""Qwen2-VL's form of a chat, without its default system prompt."""


def make_tokenizer() -> Any:
    """A byte-level BPE tokenizer (`PreTrainedTokenizerFast`) whose merges come from the words of the task."""
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    corpus = [*WORDS, *(f" {word}" for word in WORDS), QUESTION, "user\n", "assistant\n", "system\n"]
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END_OF_TURN,
        pad_token=END_OF_TEXT,
        clean_up_tokenization_spaces=False,
        model_max_length=MAX_POSITIONS,
    )


def make_processor() -> Any:
    """The `Qwen2VLProcessor` with tokenizer and chat template; pictures are changed in nothing but their value range."""
    import transformers

    size = {"shortest_edge": 4 * UNIT**2, "longest_edge": 64 * UNIT**2}
    settings: dict[str, Any] = {
        "patch_size": PATCH,
        "merge_size": MERGE,
        "size": size,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    return transformers.Qwen2VLProcessor(
        image_processor=transformers.Qwen2VLImageProcessor(**settings),
        video_processor=transformers.Qwen2VLVideoProcessor(**settings),
        tokenizer=make_tokenizer(),
        chat_template=CHAT_TEMPLATE,
    )


def make_config(tokenizer: Any) -> Any:
    """The `Qwen2VLConfig`: 2 text layers of width 128 with heads of 32 (vLLM's CPU attention takes multiples of 32),
    2 vision layers of width 64, untied embeddings."""
    import transformers

    def token_id(token: str) -> int:
        return int(tokenizer.convert_tokens_to_ids(token))

    text = {
        "vocab_size": -(-len(tokenizer) // 64) * 64,
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": MAX_POSITIONS,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]},
        "bos_token_id": None,
        "eos_token_id": token_id(END_OF_TURN),
        "pad_token_id": token_id(END_OF_TEXT),
        "tie_word_embeddings": False,
        "initializer_range": INITIAL_SPREAD,
    }
    vision = {
        "depth": 2,
        "embed_dim": 64,
        "num_heads": 2,
        "mlp_ratio": 2,
        "hidden_size": 128,
        "patch_size": PATCH,
        "spatial_merge_size": MERGE,
        "initializer_range": INITIAL_SPREAD,
    }
    return transformers.Qwen2VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=token_id(IMAGE),
        video_token_id=token_id(VIDEO),
        vision_start_token_id=token_id(VISION_START),
        vision_end_token_id=token_id(VISION_END),
        tie_word_embeddings=False,
        dtype="float32",
    )


def make_model(tokenizer: Any, seed: int) -> Any:
    """The untrained model in float32; equal weights for equal seeds."""
    import torch
    import transformers

    torch.manual_seed(seed)
    model = transformers.Qwen2VLForConditionalGeneration(make_config(tokenizer))
    model.generation_config = transformers.GenerationConfig(
        do_sample=False,
        eos_token_id=int(tokenizer.convert_tokens_to_ids(END_OF_TURN)),
        pad_token_id=int(tokenizer.convert_tokens_to_ids(END_OF_TEXT)),
    )
    return model.float()
