"""Looks at a store, then tries to write to it, and says what came of both."""

import sys

import harken
from harken.errors import HarkenError

with harken.open(sys.argv[1]) as repo:
    for row in repo.sessions():
        print(row.session, len(repo.history(row.session)), flush=True)
    try:
        repo.checkpoint(b"more", format="blob-v1")
    except HarkenError as problem:
        print(f"{type(problem).__name__}: {problem}", flush=True)
