"""The command line, called in this process with a store of its own, and the path of a recording."""

from __future__ import annotations

from support.command_line import repo as repo
from support.command_line import run as run
from support.command_line import where as where
from support.std_recording import path as path
