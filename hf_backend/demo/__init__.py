"""The demo: a tiny model that really reads, its data, its server and its report.

Gives nothing by itself; import the files of this room. Not part of the backend: nothing outside `hf_backend.cli` imports it.
"""
