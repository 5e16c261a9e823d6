"""Measuring an HF processor: what it does with one item, and from that everything that others would guess.

`calls` runs the processor and counts, `alone` is the one primitive, `layout` tells how fields of several items join,
`profile` measures a processor once a process, `sizes` finds the largest item. Not for serving requests
(`hf_backend.processing`).
"""
