"""What formats share: readers, vocabularies, and how a file is claimed.

jsonl           JSON lines, read leniently and within limits
claims          whose bytes these are
cutting         where a file of lines falls into deltas: what the rules share
scanning        one pass over such a file for the importer: what the scanners share
anthropic       Anthropic's content blocks as events, and events as messages
gemini          Gemini contents as events
gemini_joining  parts of them that came in pieces
openai          OpenAI's items as events
openai_writing  events as OpenAI's items
"""
