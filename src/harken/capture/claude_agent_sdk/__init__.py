"""The Claude Agent SDK: a run's transcript files are read while Claude Code writes them.

tail       a file that grows: its whole lines, each once
records    the records of a file, as events
files      a file and how far the session has it
telling    what the bus hears
sources    the conversation of a file and those of its sub-agents, put into the session
watch      when the files are looked at, and when the run is over
options    `harken.capture.claude_agent`
"""
