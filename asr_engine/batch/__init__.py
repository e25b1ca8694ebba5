"""Decoding, windows, two passes."""
