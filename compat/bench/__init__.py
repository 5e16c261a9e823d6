"""Measurements of speed that a person asks for; nothing here is a test."""
