"""`harken import` in small transactions: store, folder. A line on stdout acknowledges a session."""

import sys

from harken.cli import main
from harken.runtimes import importer

importer.STEP = 2500
importer.BATCH = 4000

main(["--store", sys.argv[1], "import", sys.argv[2], "--json"])
