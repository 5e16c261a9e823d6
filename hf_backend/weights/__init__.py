"""From a checkpoint's weights to the names and shapes that vLLM's modules load.

Takes (name, tensor) pairs in any layout that transformers itself loads; gives pairs under vLLM's names. Not for the loading
itself, which stays with vLLM's `AutoWeightsLoader`, and not for quantised tensors' contents.
"""
