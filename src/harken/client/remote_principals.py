"""The methods of `RemoteRepo` about principals: their sessions, their keys, their figures."""

from __future__ import annotations

from harken.api.principals import (
    DeleteKeyRequest,
    EndSessionRequest,
    GetKeyRequest,
    KeyAnswer,
    KeysRequest,
    LatestSessionRequest,
    PrincipalFiguresAnswer,
    PrincipalMetricsRequest,
    PutKeyRequest,
    RunningSessionsRequest,
    StartSessionRequest,
    TrackedSessionAnswer,
)
from harken.context.checkpoint import Time
from harken.repo.principal_figures import PrincipalFigures, PrincipalMetrics
from harken.repo.principals import KeptKey, TrackedSession, check_kept

from . import values
from .asking import INLINE, AskingService, time_of


class RemotePrincipals(AskingService):
    """What principals keep in a store behind a service. Where none is named, it is that of the token."""

    def start_session(
        self,
        session: str,
        *,
        principal: str,
        machine: str = "",
        template: str = "",
        ticket_id: str = "",
        thread_id: str = "",
        time: Time = None,
    ) -> TrackedSession:
        """Say that a session begins; said twice, it began the first time."""
        request = StartSessionRequest(
            session=session,
            principal=principal,
            machine=machine,
            template=template,
            ticket_id=ticket_id,
            thread_id=thread_id,
            time=time_of(time),
        )
        return _tracked(self.ask_service("start_session", request))

    def end_session(self, session: str, *, principal: str, time: Time = None) -> TrackedSession:
        """Say that a session is over; `NotFound` where nobody said that it began, or somebody that it is over."""
        request = EndSessionRequest(session=session, principal=principal, time=time_of(time))
        return _tracked(self.ask_service("end_session", request))

    def latest_session(self, principal: str) -> TrackedSession | None:
        """The session of a principal that was last said to begin or to end, and its last context."""
        found = self.ask_service("latest_session", LatestSessionRequest(principal=principal)).latest
        return None if found is None else _tracked(found)

    def running_sessions(self, principal: str = "") -> list[TrackedSession]:
        """The sessions that nobody has said to be over, the newest first: of a principal, or of all."""
        return [*map(_tracked, self.ask_service("running_sessions", RunningSessionsRequest(principal=principal)))]

    def put_key(
        self,
        principal: str,
        key: str,
        data: bytes | None = None,
        *,
        artifact: str | None = None,
        media_type: str = "",
        session: str = "",
        time: Time = None,
    ) -> KeptKey:
        """Keep bytes, or an artifact that is there, by a key; what the key said before stays on its chain."""
        check_kept(data, artifact)
        if data is not None and len(data) > INLINE:
            artifact, data = self._put_bytes(data, "default", None), None
        request = PutKeyRequest(
            principal=principal,
            key=key,
            body=data,
            artifact=artifact,
            media_type=media_type,
            session=session,
            time=time_of(time),
        )
        return _key(self.ask_service("put_key", request))

    def get_key(self, principal: str, key: str) -> KeptKey:
        """What a principal keeps by a key; `get` has the bytes."""
        return _key(self.ask_service("get_key", GetKeyRequest(principal=principal, key=key, content=False)))

    def keys(self, principal: str, prefix: str = "") -> list[KeptKey]:
        """What a principal keeps, by key: all of it, or what keys keep that begin like this."""
        return [*map(_key, self.ask_service("keys", KeysRequest(principal=principal, prefix=prefix)))]

    def delete_key(self, principal: str, key: str, *, time: Time = None) -> None:
        """Let go of a key; what it said stays on its chain, and no key leads there any more."""
        self.ask_service("delete_key", DeleteKeyRequest(principal=principal, key=key, time=time_of(time)))

    def principal_metrics(self, principal: str = "", *, prices: str = "") -> PrincipalMetrics:
        """What a principal (without one, everybody) has done: in sessions that are running, and in all."""
        found = self.ask_service("principal_metrics", PrincipalMetricsRequest(principal=principal, prices=prices))
        return PrincipalMetrics(
            principal=found.principal,
            running=tuple(found.running),
            live=_figures(found.live),
            total=_figures(found.total),
            reached=values.progress_of(found),
        )


def _tracked(answer: TrackedSessionAnswer) -> TrackedSession:
    times = {"started": values.instant(answer.started) or 0, "ended": values.instant(answer.ended)}
    return TrackedSession(**values.same_fields(TrackedSession, answer) | times)


def _key(answer: KeyAnswer) -> KeptKey:
    return KeptKey(**values.same_fields(KeptKey, answer) | {"time": values.instant(answer.time) or 0})


def _figures(answer: PrincipalFiguresAnswer) -> PrincipalFigures:
    return PrincipalFigures(**values.same_fields(PrincipalFigures, answer))
