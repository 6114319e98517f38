"""The operations of `api/` behind HTTP and a Unix socket, and the page that shows them.

No rule about sessions stands here: a shell asks who wants what (`guard.py`), whether they may (`operations.py`), and
passes it on. What it needs beyond the core is the extra `serve`; nothing else imports this package.
"""
