"""What formats share: readers, vocabularies, and how a file is claimed.

jsonl      JSON lines, read leniently and within limits
claims     whose bytes these are
"""
