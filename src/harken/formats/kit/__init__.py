"""What formats share: readers, vocabularies, and how a file is claimed."""
