"""Hooks at four points, as functions and as agents: what they may do, and what the log says of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import SessionViewer
from harken.agents import AgentPool, Approve, Call, Deny, Hook, HookAgent, MissingHook, Moment, Rewrite, hook
from harken.errors import BadRequest
from harken.events.verdicts import read_verdict, write_verdict
from support.stage import call, contents, lines, open_stage, say

PAIR = [call("task", name="Jack"), call("task", name="Jill")]


class TestBeforeATool:
    PARTS: ClassVar[dict[str, Any]] = {
        "root": [*(call("task", name=f"Searcher{n}") for n in (1, 2, 3, 4)), "Three will do."],
        "ResourceMonitor": {
            "rules": [
                {"when": "Current subagent count: 3", "say": "DENY. Maximum subagents (3) already reached."},
            ],
            "otherwise": "APPROVE",
        },
    }
    MONITOR = HookAgent(name="ResourceMonitor", points=("tool",), instructions="Three at most.")

    def test_an_agent_denies_in_the_words_of_the_specification(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", self.PARTS, hooks=[self.MONITOR])
        with session:
            say(root, "search")

            assert (
                "Error: Action blocked by hook 'ResourceMonitor': Maximum subagents (3) already reached."
                == (contents(root, "tool")[-1])
            )
            assert ["Searcher1", "Searcher2", "Searcher3"] == list(root.subagents)

    def test_its_reasoning_is_in_its_own_transcript(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", self.PARTS, hooks=[self.MONITOR])
        with session:
            say(root, "search")

            question, verdict = lines(session, agent_id="agent_002")[-2:]
            assert (
                "Agent 'agent_001' is attempting to create subagent 'Searcher4'. Current subagent count: 3. Approve?"
                == question["content"]
            )
            assert "DENY. Maximum subagents (3) already reached." == verdict["content"]
            assert question["cause"] == lines(session, agent_id="agent_001", role="assistant")[3]["message_id"]
            assert [verdict["message_id"]] == lines(session, role="tool")[-1]["cause"]

    def test_a_function_denies_the_same_way(self, tmp_path: Path) -> None:
        @hook("tool", name="Frugal")
        def frugal(moment: Moment) -> Deny | None:
            return Deny("we are poor") if moment.arguments["name"] == "Jill" else None

        root, session = open_stage(tmp_path / "log", {"root": [*PAIR, "ok"]}, hooks=[frugal])
        with session:
            say(root, "go")

            assert ["Created subagent: Jack", "Error: Action blocked by hook 'Frugal': we are poor"] == contents(
                root, "tool"
            )
            (blocked,) = SessionViewer(session.path).interventions()
            assert ("blocked", "Frugal") == (blocked["kind"], blocked["hook"])

    @pytest.mark.parametrize("answer", ["Hm, let me think.", "", "Approximately"])
    def test_an_agent_without_a_clear_verdict_counts_as_a_refusal(self, tmp_path: Path, answer: str) -> None:
        parts = {"root": [PAIR[0], "ok"], "Guard": {"otherwise": answer}}
        guard = HookAgent(name="Guard", points=("tool",), instructions="")
        root, session = open_stage(tmp_path / "log", parts, hooks=[guard])
        with session:
            say(root, "go")

            assert "Error: Action blocked by hook 'Guard': the hook gave no verdict" == contents(root, "tool")[0]

    def test_a_function_that_fails_counts_as_a_refusal(self, tmp_path: Path) -> None:
        @hook("tool")
        def broken(moment: Moment) -> None:
            raise OSError("no disk")

        root, session = open_stage(tmp_path / "log", {"root": [PAIR[0], "ok"]}, hooks=[broken])
        with session:
            assert "ok" == say(root, "go")
            assert (
                "Error: Action blocked by hook 'broken': the hook failed: OSError: no disk" == contents(root, "tool")[0]
            )

    def test_a_hook_on_the_root_watches_the_whole_tree_unless_told_otherwise(self, tmp_path: Path) -> None:
        seen: list[tuple[str, str]] = []

        def watch(name: str, tree: bool) -> Hook:
            return Hook(name=name, points=("tool",), function=lambda m: seen.append((name, m.agent.label)), tree=tree)

        parts = {"root": [call("task", name="Jill", prompt="think"), "ok"], "Jill": [call("task", name="Inner"), "yes"]}
        root, session = open_stage(tmp_path / "log", parts, hooks=[watch("all", True), watch("top", False)])
        with session:
            say(root, "go")

            assert [("all", "root"), ("top", "root"), ("all", "Jill")] == seen

    def test_a_coroutine_may_be_a_hook(self, tmp_path: Path) -> None:
        @hook("tool")
        async def slow(moment: Moment) -> Deny:
            await asyncio.sleep(0)
            return Deny("no")

        root, session = open_stage(tmp_path / "log", {"root": [PAIR[0], "ok"]}, hooks=[slow])
        with session:
            say(root, "go")
            assert "Error: Action blocked by hook 'slow': no" == contents(root, "tool")[0]


class TestBeforeADelivery:
    PARTS: ClassVar[dict[str, Any]] = {
        "root": [*PAIR, call("discuss", prompt="Talk.", speakers=["Jack", "Jill"]), "ok"],
        "Jack": ["password: 1234"],
        "Jill": ["thanks"],
        "Censor": {"rules": [{"when": "1234", "say": "CHANGE: password: [REDACTED]"}], "otherwise": "APPROVE"},
    }

    @hook("delivery", name="Redactor")
    @staticmethod
    def redact(moment: Moment) -> Rewrite | None:
        return Rewrite("password: [REDACTED]") if "1234" in moment.text else None

    @pytest.mark.parametrize(
        "watching",
        [redact, HookAgent(name="Censor", points=("delivery",), instructions="No passwords.")],
        ids=["function", "agent"],
    )
    def test_what_was_said_and_what_was_heard_both_stay(self, tmp_path: Path, watching: Hook | HookAgent) -> None:
        root, session = open_stage(tmp_path / "log", self.PARTS, hooks=[watching])
        with session:
            say(root, "go")

            (said,) = lines(session, content="password: 1234")
            (heard,) = lines(session, content="[Jack]: password: [REDACTED]")
            assert ("assistant", said["message_id"]) == (said["role"], heard["substance"])
            assert "[Jack]: password: [REDACTED]\n\n[Jill]: thanks" == contents(root, "tool")[-1]
            case = SessionViewer(session.path).interventions()[0]
            assert ("changed", watching.name, "password: 1234", "password: [REDACTED]") == (
                case["kind"],
                case["hook"],
                case["said"],
                case["heard"],
            )

    def test_a_text_may_be_withheld_from_one_and_heard_by_another(self, tmp_path: Path) -> None:
        @hook("delivery")
        def not_for_jill(moment: Moment) -> Deny | None:
            return Deny("she must not know") if "Jill" in moment.recipients and "1234" in moment.text else None

        parts = self.PARTS | {
            "root": [
                *PAIR,
                call("task", name="Ann"),
                call("discuss", prompt="Talk.", speakers=["Jack"], listeners=["Jill", "Ann"]),
                "ok",
            ]
        }
        root, session = open_stage(tmp_path / "log", parts, hooks=[not_for_jill])
        with session:
            say(root, "go")

            assert ["Talk."] == contents(root.subagents["Jill"], "user")
            assert ["Talk.", "[Jack]: password: 1234"] == contents(root.subagents["Ann"], "user")

    def test_inform_asks_functions_and_says_when_it_would_have_to_wait(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": [*PAIR, "ok"]}, hooks=[self.redact])
        with session:
            say(root, "go")
            jack, jill = root.subagents["Jack"], root.subagents["Jill"]
            jack.inform(jill, "1234")
            assert "password: [REDACTED]" == jill.transcript[-1]["content"]

            root.add_hook(HookAgent(name="Slow", points=("delivery",), instructions=""))
            with pytest.raises(BadRequest, match="waited for"):
                jack.inform(jill, "5678")

    def test_a_tool_of_ones_own_delivers_through_the_hooks(self, tmp_path: Path) -> None:
        async def whisper(call: Call, to: str, text: str) -> str:
            await call.deliver(text, [call.agent.subagents[to]])
            return "done"

        parts = {"root": [PAIR[0], call("whisper", to="Jack", text="1234"), "ok"]}
        root, session = open_stage(tmp_path / "log", parts, hooks=[self.redact], tools=[whisper])
        with session:
            say(root, "go")
            assert ["password: [REDACTED]"] == contents(root.subagents["Jack"], "user")


class TestWhenAnUtteranceIsFinished:
    @staticmethod
    def demanding(word: str) -> Hook:
        return Hook(
            name="Demanding",
            points=("finished",),
            function=lambda m: None if word in m.text else Deny(f"say {word}"),
        )

    def test_it_may_be_sent_back_until_it_is_good(self, tmp_path: Path) -> None:
        root, session = open_stage(
            tmp_path / "log", {"root": ["no", "well", "please"]}, hooks=[self.demanding("please")]
        )
        with session:
            assert "please" == say(root, "ask nicely")
            assert ["ask nicely", "[Demanding]: say please", "[Demanding]: say please"] == contents(root, "user")

    def test_it_stands_after_three_times(self, tmp_path: Path) -> None:
        parts = {"root": ["one", "two", "three", "four", "five"]}
        root, session = open_stage(tmp_path / "log", parts, hooks=[self.demanding("never")])
        with session:
            assert "four" == say(root, "go")

    def test_what_was_sent_back_is_heard_with_a_link_to_the_hook(self, tmp_path: Path) -> None:
        root, session = open_stage(tmp_path / "log", {"root": ["no", "please"]}, hooks=[self.demanding("please")])
        with session:
            say(root, "ask")

            heard = root.transcript[-2]
            (piece,) = lines(session, message_id=heard["substance"])
            (verdict,) = lines(session, message_id=piece["cause"])
            (question,) = lines(session, agent_id=verdict["agent_id"], role="user")[:1]
            assert ("DENY. say please", lines(session, content="no")[0]["message_id"]) == (
                verdict["content"],
                question["cause"],
            )
            assert "agent_002" == heard["hook"] == piece["agent_id"]

    def test_a_remark_on_a_finished_turn_does_not_open_it_again(self, tmp_path: Path) -> None:
        praise = Hook(name="Praise", points=("finished",), function=lambda m: Approve(say="Well said."))
        root, session = open_stage(tmp_path / "log", {"root": ["Thank you."]}, hooks=[praise])
        with session:
            say(root, "go")
            assert ["go", "[Praise]: Well said."] == contents(root, "user")

        root, session = open_stage(tmp_path / "log", {"root": ["Thank you."]}, hooks=[praise])
        with session:
            assert not root.is_pending
            asyncio.run(root.resume())
            assert ["go", "[Praise]: Well said."] == contents(root, "user")


class TestWhenAPromptArrives:
    def test_a_hook_may_speak_to_the_agent_it_watches(self, tmp_path: Path) -> None:
        remember = Hook(name="Memory", points=("prompt",), function=lambda m: Approve(say="You know her."))
        root, session = open_stage(tmp_path / "log", {"root": ["Hello again."]}, hooks=[remember])
        with session:
            say(root, "I am Ann.")

            assert ["I am Ann.", "[Memory]: You know her."] == contents(root, "user")
            assert lines(session, event_type="piece_of_text")[0]["message_id"] == root.transcript[1]["substance"]

    def test_what_a_hook_says_is_no_prompt_for_hooks(self, tmp_path: Path) -> None:
        asked: list[str] = []

        def chatty(moment: Moment) -> Approve:
            asked.append(moment.text)
            return Approve(say="psst")

        root, session = open_stage(
            tmp_path / "log",
            {"root": ["yes", "yes"]},
            hooks=[Hook(name=name, points=("prompt",), function=chatty) for name in ("One", "Two")],
        )
        with session:
            say(root, "hello")

            assert ["hello", "hello"] == asked

    def test_a_refused_prompt_is_answered_without_the_model(self, tmp_path: Path) -> None:
        polite = Hook(
            name="Polite", points=("prompt",), function=lambda m: Deny("be polite") if "!" in m.text else None
        )
        root, session = open_stage(tmp_path / "log", {"root": [{"error": "must not be asked"}]}, hooks=[polite])
        with session:
            assert "Error: Prompt blocked by hook 'Polite': be polite" == say(root, "Answer!")

    def test_a_function_that_fails_does_not_stand_in_the_way(self, tmp_path: Path) -> None:
        @hook("prompt")
        def broken(moment: Moment) -> None:
            raise KeyError("gone")

        root, session = open_stage(tmp_path / "log", {"root": ["fine"]}, hooks=[broken])
        with session:
            assert "fine" == say(root, "hello")
            assert (
                "The hook failed: KeyError: 'gone'"
                == lines(session, agent_id="agent_002", role="assistant")[0]["content"]
            )


class TestSeveralAtOnce:
    def test_a_hook_that_is_an_agent_answers_one_question_after_the_other(self, tmp_path: Path) -> None:
        parts = {
            "root": [*PAIR, "ok"],
            "Jack": [call("task", name="A"), "done"],
            "Jill": [call("task", name="B"), "done"],
            "Guard": {
                "rules": [
                    {"when": "subagent 'A'", "say": "DENY. not A", "delay": 0.02},
                    {"when": "'B'", "say": "DENY. not B"},
                ],
                "otherwise": "APPROVE",
            },
        }
        guard = HookAgent(name="Guard", points=("tool",), instructions="")
        root, session = open_stage(tmp_path / "log", parts, hooks=[guard])

        async def both() -> None:
            children = list(root.subagents.values())
            for child in children:
                child.harken("go")
            await asyncio.gather(*(child.response() for child in children))

        with session:
            say(root, "go")
            asyncio.run(both())

            assert ["Error: Action blocked by hook 'Guard': not A"] == contents(root.subagents["Jack"], "tool")
            assert ["Error: Action blocked by hook 'Guard': not B"] == contents(root.subagents["Jill"], "tool")

    def test_the_second_hook_sees_what_the_first_has_left(self, tmp_path: Path) -> None:
        first = Hook(name="First", points=("delivery",), function=lambda m: Rewrite(m.text.replace("secret", "thing")))
        second = HookAgent(name="Second", points=("delivery",), instructions="")
        parts = {
            "root": [*PAIR, call("discuss", speakers=["Jack"], listeners=["Jill"], prompt="Talk."), "ok"],
            "Jack": ["a secret"],
            "Second": {"rules": [{"when": "a thing", "say": "CHANGE: nothing"}], "otherwise": "APPROVE"},
        }
        root, session = open_stage(tmp_path / "log", parts, hooks=[first, second])
        with session:
            say(root, "go")

            assert "[Jack]: nothing" == contents(root.subagents["Jill"], "user")[-1]
            assert not any("secret" in text for text in contents(AgentPool.of(session).get("agent_003"), "user"))


class TestAfterALoad:
    def test_agents_are_attached_again_by_themselves(self, tmp_path: Path) -> None:
        monitor = HookAgent(name="Guard", points=("tool",), instructions="Refuse everything.")
        parts = {"root": ["hello", PAIR[0], "ok"], "Guard": {"otherwise": "DENY. No."}}
        root, session = open_stage(tmp_path / "log", parts, hooks=[monitor])
        with session:
            say(root, "hello")

        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "make Jack")
            assert "Error: Action blocked by hook 'Guard': No." == contents(root, "tool")[-1]
            told = contents(AgentPool.of(session).get("agent_002"), "system")
            assert ["Refuse everything."] == [text[:18] for text in told]
            assert ("Guard", ("tool",), True) == (
                root.watchers[0].name,
                root.watchers[0].hook.points,
                root.watchers[0].hook.tree,
            )
            assert not root.subagents

    def test_a_function_is_passed_again_and_is_the_same_hook(self, tmp_path: Path) -> None:
        @hook("tool")
        def frugal(moment: Moment) -> Deny:
            return Deny("no")

        parts = {"root": ["hello", PAIR[0], "ok"]}
        root, session = open_stage(tmp_path / "log", parts, hooks=[frugal])
        with session:
            say(root, "hello")

        root, session = open_stage(tmp_path / "log", parts, hooks=[frugal])
        with session:
            say(root, "make Jack")
            assert "Error: Action blocked by hook 'frugal': no" == contents(root, "tool")[-1]
            assert 2 == len(session.agents)
            assert [] == root.missing_hooks

    def test_a_missing_function_is_reported(self, tmp_path: Path) -> None:
        root, session = open_stage(
            tmp_path / "log", {}, hooks=[Hook(name="redact", points=("delivery",), function=print)]
        )
        session.close()

        with pytest.warns(MissingHook, match="'redact'"):
            root, session = open_stage(tmp_path / "log", {})
        session.close()

        assert ["redact"] == root.missing_hooks

    def test_an_utterance_is_not_reviewed_twice_and_not_by_a_newcomer(self, tmp_path: Path) -> None:
        seen: list[str] = []
        watch = [Hook(name=n, points=("finished",), function=lambda m: seen.append(m.text)) for n in ("Old", "New")]
        root, session = open_stage(tmp_path / "log", {"root": ["hello"]}, hooks=watch[:1])
        with session:
            say(root, "hello")

        root, session = open_stage(tmp_path / "log", {"root": ["hello"]}, hooks=watch)
        with session:
            assert not root.is_pending
            assert asyncio.run(root.resume()) is None
            assert ["hello"] == seen

    def test_an_utterance_whose_review_was_cut_off_is_reviewed(self, tmp_path: Path) -> None:
        parts = {"root": ["hello", "hello, please"]}
        hooks = [TestWhenAnUtteranceIsFinished.demanding("please")]
        root, session = open_stage(tmp_path / "log", parts, hooks=hooks)
        with session:
            say(root, "hello")
        lines_ = (tmp_path / "log").read_bytes().splitlines(keepends=True)
        (tmp_path / "log").write_bytes(b"".join(lines_[:4]))

        root, session = open_stage(tmp_path / "log", parts, hooks=hooks)
        with session:
            assert "hello" == root.transcript[-1]["content"]
            assert root.is_pending
            assert "hello, please" == asyncio.run(root.resume())

    def test_a_hook_watches_the_agent_it_watched(self, tmp_path: Path) -> None:
        deny = Hook(name="deny", points=("tool",), function=lambda m: Deny("no"), tree=False)
        parts = {"root": [PAIR[0], "ok", call("discuss", prompt="go"), "ok"], "Jack": [call("task", name="X"), "ok"]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "go")
            root.subagents["Jack"].add_hook(deny)

        root, session = open_stage(tmp_path / "log", parts, hooks=[deny])
        with session:
            say(root, "go on")
            assert [] == root.watchers
            assert ["Error: Action blocked by hook 'deny': no"] == contents(root.subagents["Jack"], "tool")

    def test_the_hooks_of_a_terminated_agent_are_gone(self, tmp_path: Path) -> None:
        parts = {"root": [PAIR[0], "ok"]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "go")
            root.subagents["Jack"].add_hook(Hook(name="deny", points=("tool",), function=print))
            root.subagents["Jack"].terminate()

        root, session = open_stage(tmp_path / "log", parts)
        with session:
            assert [] == root.missing_hooks
            assert all(info.terminated for info in session.agents.values() if info.agent_id != "agent_001")


class TestVerdicts:
    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            ("APPROVE", Approve()),
            ("**Approved.** Looks fine.", Approve()),
            ("accept", Approve()),
            ("DENY. Too many.", Deny("Too many.")),
            ("Reject: it is late", Deny("it is late")),
            ("DENY", Deny("no reason given")),
            ("CHANGE: hello", Rewrite("hello")),
            ("CHANGE", Rewrite("")),
            ("SAY: Remember her.", Approve(say="Remember her.")),
            ("CHANGE: *smiles* - hello", Rewrite("*smiles* - hello")),
            ("**DENY** — too many\n", Deny("too many")),
            ("SAY", None),
            ("I would approve", None),
            ("...", None),
            ("", None),
        ],
    )
    def test_are_read_from_the_first_word(self, answer: str, expected: object) -> None:
        assert expected == read_verdict(answer)

    @settings(max_examples=100, deadline=None)
    @given(st.one_of(st.builds(Approve, st.text()), st.builds(Deny, st.text()), st.builds(Rewrite, st.text())))
    def test_of_a_function_are_read_back_to_the_letter(self, verdict: Approve | Deny | Rewrite) -> None:
        """A crash behind the verdict must not change what is heard."""
        assert verdict == read_verdict(write_verdict(verdict), exact=True)

    @pytest.mark.parametrize("points", [(), ("never",), ("tool", "never")])
    def test_a_hook_stands_at_points_there_are(self, points: tuple[str, ...]) -> None:
        with pytest.raises(BadRequest, match="points"):
            Hook(name="x", points=points, function=print)


class TestWhatAToolBringsBack:
    """#4: words of another agent are heard through that agent's hooks, whichever tool fetched them."""

    PARTS: ClassVar[dict[str, Any]] = {
        "root": [call("task", name="Jill"), call("consult", name="Jill"), "Done."],
        "Jill": ["the password is swordfish"],
    }

    @staticmethod
    def play(path: Path, verdict: Any) -> tuple[list[dict[str, Any]], list[tuple[str, ...]], list[Any]]:
        """The last result of a tool, whom the hook was asked about, and what the views call an intervention."""
        asked: list[tuple[str, ...]] = []

        async def consult(call: Call, name: str) -> str:
            """Ask a subagent something."""
            other = call.agent.subagents[name]
            other.harken("Well?")
            return await other.response()

        def censor(moment: Moment) -> Any:
            asked.append(moment.recipients)
            return verdict

        hooks = [Hook(name="Censor", points=("delivery",), function=censor)]
        root, session = open_stage(path, TestWhatAToolBringsBack.PARTS, hooks=hooks, tools=[consult])
        with session:
            assert "Done." == say(root, "go")
            results = lines(session, role="tool", agent_id=root.agent_id)[-1:]
        return results, asked, SessionViewer(path).interventions()

    def test_may_be_changed(self, tmp_path: Path) -> None:
        [result], asked, found = self.play(tmp_path / "log", Rewrite("the password is ***"))

        assert ("the password is ***", [("root",)]) == (result["content"], asked)
        assert SessionViewer(tmp_path / "log").line(result["substance"])["content"] == "the password is swordfish"
        assert ["changed"] == [one["kind"] for one in found]

    def test_may_be_withheld(self, tmp_path: Path) -> None:
        [result], _, found = self.play(tmp_path / "log", Deny("secret"))

        assert "Jill answered, and a hook withheld it." == result["content"]
        assert "substance" not in result
        assert ["withheld"] == [one["kind"] for one in found]

    def test_is_as_it_was_said_where_the_hook_approves(self, tmp_path: Path) -> None:
        [result], asked, found = self.play(tmp_path / "log", Approve())

        assert ("the password is swordfish", [("root",)], []) == (result["content"], asked, found)
        assert "substance" in result
