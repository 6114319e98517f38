"""Session documents, STD-001 and STD-008. No program keeps them in a place of its own: they are imported by name, as a
file or with the folder that they lie in.

A session is named by its `session_id`; two files of one id are two versions of a session, as everywhere. Every agent
with a sub-session has a chain of its own.
"""
