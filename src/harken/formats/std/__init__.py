"""Session documents, STD-001 and STD-008: read, checked, repaired, made from events and read into them.

Everything here is a pure function of values; files are the business of others. The plan is in
`docs/design/005-session-documents.md`.
"""
