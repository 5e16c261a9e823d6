"""What the text model needs beside embeddings.

`positions` gives M-RoPE positions, `view` the text-only face that vLLM asks a multimodal model for. Not for encoders
(`hf_backend.encoding`).
"""
