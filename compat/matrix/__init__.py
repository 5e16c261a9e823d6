"""Whether this package is right on every pair of vLLM and transformers it supports.

`data` names the releases and what is expected of them, `trees` holds each in a folder of its own, `run` runs one pair,
`plan` says which pairs are left, `merge` and `picture` make the table, the regressions and the heat map. Not for what a
family is asked (`compat.parity`).
"""
