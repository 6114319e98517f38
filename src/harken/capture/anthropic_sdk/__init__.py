"""Anthropic's SDK: messages, of every kind of client."""
