"""Measurements of speed, for people to run; no test depends on them."""
