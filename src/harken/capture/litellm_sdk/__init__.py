"""LiteLLM: calls that go through a wrapper of its functions, or that its callbacks tell of."""
