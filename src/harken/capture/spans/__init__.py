"""Spans of OpenTelemetry as a session: the way in for frameworks that trace their calls, and need no adapter."""
