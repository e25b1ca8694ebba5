"""Transcript formats: pure functions."""
