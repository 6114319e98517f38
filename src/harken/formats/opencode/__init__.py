"""OpenCode, and Kilo, which has its schema: `rows.py` is a session as its database has it, `export.py` the document
that the program prints and takes in."""
