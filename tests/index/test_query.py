"""What people type to search, and what is said where it makes no sense."""

from __future__ import annotations

import sqlite3
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import clock
from harken.errors import BadRequest
from harken.index.query import FILTERS, Filter, Query, Term, instant_of, parse


def _local(text: str) -> int:
    return clock.from_datetime(datetime.fromisoformat(text).astimezone())


NOON = _local("2026-03-10T12:00:00")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("fix it", Query(wanted=((Term("fix"),), (Term("it"),)))),
        ('"off by one"', Query(wanted=((Term("off by one"),),))),
        ("Conn*", Query(wanted=((Term("Conn", True),),))),
        ('"off by"*', Query(wanted=((Term("off by", True),),))),
        ('fix -test -"a b"', Query(wanted=((Term("fix"),),), without=(Term("test"), Term("a b")))),
        ("a OR b c", Query(wanted=((Term("a"), Term("b")), (Term("c"),)))),
        ("tool:Bash x", Query(wanted=((Term("x"),),), filters=(Filter("tool", "Bash"),))),
        ("-tool:Read", Query(filters=(Filter("tool", "Read", True),))),
        ('project:"my shop"', Query(filters=(Filter("project", "my shop"),))),
        ("file:/src/a.py", Query(filters=(Filter("file", "/src/a.py"),))),
        ("http://a/b", Query(wanted=((Term("http://a/b"),),))),
        ("localhost:80 std::sort", Query(wanted=((Term("localhost:80"),), (Term("std::sort"),)))),
        ('"color:red"', Query(wanted=((Term("color:red"),),))),
        ("error: -- x", Query(wanted=((Term("error:"),), (Term("x"),)))),
        ("or or", Query(wanted=((Term("or"),), (Term("or"),)))),
        ("--force", Query(wanted=((Term("--force"),),))),
    ],
)
def test_a_query_is_read_as_people_mean_it(text, query):
    assert query == parse(text)


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("", "names nothing", "give a word"),
        ("-- ...", "names nothing", "give a word"),
        ("-x", "names nothing", "wanted, too"),
        ('say "hello', "not closed", '"like this"'),
        ("agnet:jill", "no filter agnet:", "did you mean agent:jill?"),
        ("color:red", "no filter color:", '"color:red"'),
        ("agent:", "agent: needs a value", "name or id"),
        ('since:""', "since: needs a value", "yesterday"),
        ("-since:7d", "makes no sense", "opposite"),
        ("role:boss", "no role 'boss'", "human, injected"),
        ("a OR", "OR stands between", "timeout OR"),
        ("OR a", "OR stands between", "timeout OR"),
        ("a OR tool:Bash", "OR stands between", "repeated"),
        ("a OR -b", "OR stands between", "repeated"),
        ("a " * 65, "more than 64", "a few"),
        ("a" * 2001, "longer than 2000", "a few"),
    ],
)
def test_what_is_wrong_with_a_query_is_said_with_a_hint(text, problem, hint):
    with pytest.raises(BadRequest) as raised:
        parse(text)

    assert problem in str(raised.value)
    assert hint in (raised.value.hint or "")


@given(st.text(alphabet=st.sampled_from("ab \"*-:()ORNEARAND^{}+.\0'é検索") | st.characters(), max_size=40))
@settings(max_examples=300, deadline=None)
def test_no_query_is_ever_taken_for_the_syntax_of_the_index(text):
    """Whatever is typed, it is a query that SQLite understands or an error of ours."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61')")
    try:
        query = parse(text)
    except BadRequest:
        return

    for expression in filter(None, (query.expression, query.unwanted)):
        assert [] == connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall()


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_takes_quoted_values(name):
    value = {"role": "human"}.get(name, "a b")

    assert (Filter(name, value),) == parse(f'{name}:"{value}"').filters == parse(f'{name.upper()}:"{value}"').filters


@pytest.mark.parametrize(
    ("filter", "local"),
    [
        (Filter("since", "today"), "2026-03-10"),
        (Filter("since", "yesterday"), "2026-03-09"),
        (Filter("since", "2026-01-31"), "2026-01-31"),
        (Filter("since", "12h"), "2026-03-10"),
        (Filter("until", "2026-01-31"), "2026-01-31T23:59:59.999999"),
        (Filter("until", "yesterday"), "2026-03-09T23:59:59.999999"),
    ],
)
def test_a_day_is_one_of_the_local_time_zone_and_counts_to_its_end(filter, local):
    assert _local(local) == instant_of(filter, NOON)


@pytest.mark.parametrize("value", ["soon", "2026-02-30", "7", "10000-01-01"])
def test_what_is_no_time_is_said(value):
    with pytest.raises(BadRequest, match="is no time"):
        instant_of(Filter("since", value), NOON)
