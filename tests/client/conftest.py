"""The command line, called in this process with a store of its own."""

from __future__ import annotations

from support.command_line import repo as repo
from support.command_line import run as run
from support.command_line import where as where
