"""What shows whether the backend is right: tiny checkpoints of real model families and comparisons with transformers.

Not part of the installed package: `hf_backend` never imports it.
"""
