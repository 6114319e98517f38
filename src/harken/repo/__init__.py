"""`Repo`: the one object that programs hold. Every operation of Harken is one of its sentences."""

from __future__ import annotations

from .agents import SessionAgent
from .checkpoint import CommitFacts
from .location import absolute_location, default_location, home_folder, is_service
from .repo import Repo, open

__all__ = [
    "CommitFacts",
    "Repo",
    "SessionAgent",
    "absolute_location",
    "default_location",
    "home_folder",
    "is_service",
    "open",
]
