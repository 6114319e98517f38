"""Transcript entries: what they are, as events and back, and the format `transcript-v1`, a line of JSON each."""
