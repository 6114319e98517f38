"""`python -m harken` is the command line."""

from harken.cli import main

main()
