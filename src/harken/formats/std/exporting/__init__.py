"""A session document from the events of any session: `from_events.document_of` is the door."""
