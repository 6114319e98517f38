"""Three small runtimes, each with a program of its own, that come to Harken through entry points alone."""
