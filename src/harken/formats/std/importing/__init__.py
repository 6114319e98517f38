"""Events from a session document: `to_events.events_of` is the door, `scan` what an import has to know."""
