"""What the text model needs beside embeddings.

`lookup` measures what token ids are looked up as, `levels` where features of several levels are added, `inputs` keeps what a
step is given, `compiled` tells vLLM's compiler of it, `logits` suppresses tokens. `positions` gives M-RoPE positions, `view`
the text-only face that vLLM asks a multimodal model for. Not for encoders (`hf_backend.encoding`).
"""
