"""Streams, slots, scheduler, engine."""
