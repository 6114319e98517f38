"""Mending session documents: `repair.repair` is the door, `broken_json` mends what is no JSON yet."""
