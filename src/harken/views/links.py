"""Where content comes from: follow every `substance` to its root, once, without recursion.

A log may name messages that are not in it and may, by accident or malice, run in a circle. Positions in the file
are whole numbers from 0; a message that is only named gets a negative one. The root of a circle is its earliest
member, so that it too is one piece of content.
"""

from __future__ import annotations

_UNSEEN = -(1 << 62)
_OPEN = _UNSEEN + 1


def roots(source: list[int]) -> tuple[list[int], list[int]]:
    """For each position: the root of its content, and how many deliveries lie between.

    `source[i]` is the position that i repeats, i itself where it is new, or a negative number for one outside.
    """
    root = [_UNSEEN] * len(source)
    hops = [0] * len(source)
    for start, before in enumerate(source):
        if before == start:
            root[start] = start
        elif root[start] == _UNSEEN:
            _resolve(start, source, root, hops)
    return root, hops


def _resolve(start: int, source: list[int], root: list[int], hops: list[int]) -> None:
    path: list[int] = []
    at = start
    while at >= 0 and root[at] == _UNSEEN:
        root[at] = _OPEN
        path.append(at)
        if source[at] == at:
            break
        at = source[at]
    if at < 0:
        origin, distance = at, 0
    elif root[at] != _OPEN:
        origin, distance = root[at], hops[at]
    else:
        origin, distance = _close(path, path.index(at), root, hops)
        del path[path.index(at) :]
    for here in reversed(path):
        distance += 1
        root[here], hops[here] = origin, distance


def _close(path: list[int], first: int, root: list[int], hops: list[int]) -> tuple[int, int]:
    """Settle a circle (or the one-member circle of new content) and say where the way into it arrives."""
    circle = path[first:]
    turn = circle.index(min(circle))
    for distance, here in enumerate(reversed(circle[turn + 1 :] + circle[: turn + 1])):
        root[here], hops[here] = circle[turn], distance
    return circle[turn], hops[circle[0]]
