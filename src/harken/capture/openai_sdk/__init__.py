"""OpenAI's SDK: chat completions and responses, of every kind of client."""
