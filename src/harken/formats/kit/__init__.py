"""What formats share: readers, vocabularies, and how a file is claimed.

jsonl           JSON lines, read leniently and within limits
claims          whose bytes these are
anthropic       Anthropic's content blocks as events, and events as messages
gemini          Gemini contents as events
gemini_joining  parts of them that came in pieces
openai          OpenAI's items as events
openai_writing  events as OpenAI's items
"""
