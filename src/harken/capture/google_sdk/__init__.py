"""Google's GenAI SDK: contents and interactions, of every kind of client."""
