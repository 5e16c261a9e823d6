"""Finding what takes an item's placeholder's place in a prompt, and putting it there.

`base` says what a strategy is, `offsets` is the one for processors that report what they replaced, `splice` puts
expansions into a prompt of token ids. Not for calling processors (`hf_backend.probe`).
"""
