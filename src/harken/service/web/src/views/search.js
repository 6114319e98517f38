// Everything that was said and done, by words: hits by session, the best first.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, commitAddress, go, sessionAddress, setParams } from "../address.js";
import { html, names } from "../html.js";
import { useKeys } from "../keys.js";
import { List } from "../list.js";
import { Icon, RuntimeMark } from "../marks.js";
import { askMany } from "../server.js";
import { Loading, Problem, State, useAnswer } from "../states.js";
import { count, day, moment, pathEnd, plural, shown } from "../words.js";
import { ROLES, Spots } from "./spots.js";

const FIRST = 200;
const MOST = 1000;
const EACH = 4; // hits of a session that are shown at first
const EXAMPLES = ["tool:Bash error", "role:human since:7d", "file:README.md", '"merge conflict" -test', "model:opus"];
/** What is looked in, and the filter that says so. */
const KINDS = [["", "Everything"], ["role:human", "You"], ["role:assistant", "Answers"], ["role:call", "Calls"], ["role:result", "Results"], ["role:thinking", "Thoughts"]];
const TIMES = [["", "Any time"], ["since:7d", "7 days"], ["since:30d", "30 days"], ["since:365d", "Year"]];

/** The query with the filters of one kind exchanged for another; what is in quotes stays as it is. */
function withFilter(query, name, filter) {
  const kept = query.match(/"[^"]*"|\S+/g)?.filter((word) => !word.startsWith(name + ":")) || [];
  return [...kept, filter].filter(Boolean).join(" ");
}

const hasFilter = (query, filter) => query.split(/\s+/).includes(filter);

/** Hits by session, a head before the first of each; sessions in the order of their best. Of one that is not open a few. */
function grouped(hits, open) {
  const sessions = new Map();
  for (const hit of hits) {
    const key = (hit.session || hit.commit || "").split("/")[0];
    if (!sessions.has(key)) sessions.set(key, []);
    sessions.get(key).push(hit);
  }
  return [...sessions].flatMap(([key, own]) => {
    const whole = open.has(key) || own.length <= EACH + 1;
    const shownHits = (whole ? own : own.slice(0, EACH)).map((hit) => ({ hit }));
    return [{ head: own[0], own: own.length }, ...shownHits, ...(whole ? [] : [{ more: own.length - EACH, key }])];
  });
}

const addressOf = (hit) => (hit.session ? sessionAddress(hit.session, { record: hit.message_id || "" }) : hit.commit ? commitAddress(hit.commit) : "/");

export function Search() {
  const query = address.value.params.get("q") || "";
  const [limit, setLimit] = useState(FIRST);
  const [at, setAt] = useState(-1);
  const field = useRef(null);
  const list = useRef(null);
  const [found, problem, again] = useAnswer("search", { query, limit }, { key: query, skip: !query, many: askMany });
  const hits = useMemo(() => (found || []).filter((hit) => hit.snippet !== undefined), [found]);
  const [open, setOpen] = useState(new Set());
  const rows = useMemo(() => grouped(hits, open), [hits, open]);
  const sessions = rows.filter((row) => row.head).length;
  const rest = (found || []).find((hit) => hit.more !== undefined);
  useLayoutEffect(() => void (setAt(-1), setLimit(FIRST), setOpen(new Set())), [query]);
  useEffect(() => void (document.title = query ? `${query} · Harken` : "Search · Harken") || (() => (document.title = "Harken")), [query]);
  const move = (to, by) => {
    let next = to;
    while (rows[next] && !rows[next].hit) next += by;
    if (!rows[next]) return;
    setAt(next);
    list.current?.scrollTo(next, { onlyIfHidden: true });
    list.current?.focusRow(next, ".hit");
  };
  useKeys({
    filter: () => void (field.current?.focus(), field.current?.select()),
    next: () => (rows.length ? move(at + 1, 1) : false),
    previous: () => (rows.length ? move(Math.max(1, at - 1), at > 1 ? -1 : 1) : false),
    first: () => (rows.length ? move(0, 1) : false),
    last: () => (rows.length ? (list.current?.scrollToEnd(), move(rows.length - 1, -1)) : false),
    open: () => (rows[at]?.hit ? void go(addressOf(rows[at].hit)) : false),
  });
  return html`<main id="main" class="search">
    <h1 class="screen-reader">Search</h1>
    <${Form} query=${query} field=${field} />
    ${!query
      ? html`<${Nothing} />`
      : problem
        ? html`<${Problem} problem=${problem} again=${again} />`
        : !found
          ? html`<${Loading} what="hits" />`
          : !hits.length
            ? html`<${NoHits} query=${query} />`
            : html`<p class="search-told dim sm" role="status">${rest?.more ? "the best " : ""}${plural(hits.length, "hit")} in ${plural(sessions, "session")}${rest?.more ? html`; there are more${limit < MOST ? html` <button class="link" onClick=${() => setLimit(MOST)}>show up to ${count(MOST)}</button>` : ", which other words may tell apart"}` : null}${rest?.behind ? `; ${plural(rest.behind, "change")} not in the index yet` : ""}</p>
                <${List} handle=${list} source=${query} version=${rows} total=${rows.length} label="Hits" itemRole="listitem" class="hits"
                  estimate=${(n) => (rows[n]?.head ? 44 : rows[n]?.more ? 28 : 47)}
                  load=${(start, n) => Promise.resolve(rows.slice(start, start + n))}
                  row=${(row, n) => (row.head ? html`<${HitHead} hit=${row.head} own=${row.own} />` : row.more ? html`<button class="hit-more link sm" onClick=${() => setOpen(new Set(open).add(row.key))}>${count(row.more)} more here</button>` : html`<${Hit} hit=${row.hit} n=${n} chosen=${n === at} />`)} />`}
  </main>`;
}

function Form({ query, field }) {
  const [words, setWords] = useState(query);
  useLayoutEffect(() => setWords(query), [query]); // before the next key: it belongs to what is typed then
  const set = (text) => setParams({ q: text.trim() });
  const choices = (name, table, label) =>
    html`<div class="segments" role="group" aria-label=${label}>${table.map(([filter, title]) => {
      const on = filter ? hasFilter(query, filter) : !query.split(/\s+/).some((word) => word.startsWith(name + ":"));
      return html`<button type="button" aria-pressed=${on ? "true" : "false"} onClick=${() => set(withFilter(words, name, filter))}>${title}</button>`;
    })}</div>`;
  return html`<form class="search-form" role="search" onSubmit=${(event) => (event.preventDefault(), set(words), field.current?.blur())}>
    <div class="field search-field"><${Icon} name="search" /><input type="text" autofocus=${!query} ref=${field} aria-label="Search everything" placeholder="What did you or an agent say, run, read or change?" value=${words} onInput=${(event) => setWords(event.target.value)} spellcheck="false" /><button class="button primary">Search</button></div>
    ${query ? html`<div class="search-choices">${choices("role", KINDS, "Kind")}${choices("since", TIMES, "Time")}</div>` : null}
  </form>`;
}

const Nothing = () => html`<${State} title="Search everything that was said and done">
  <p>Words, “a phrase”, <code>begin*</code>, <code>-not</code>, and what it must be: <code>role:</code> <code>tool:</code> <code>file:</code> <code>project:</code> <code>model:</code> <code>agent:</code> <code>runtime:</code> <code>since:</code> <code>until:</code></p>
  <div class="row examples">${EXAMPLES.map((one) => html`<button class="button" onClick=${() => setParams({ q: one })}><code>${one}</code></button>`)}</div>
<//>`;

const NoHits = ({ query }) => {
  const bare = (query.match(/"[^"]*"|\S+/g) || []).filter((word) => !/^[a-z]+:/.test(word)).join(" ");
  return html`<${State} title=${`Nothing found for “${shown(query)}”`} actions=${bare && bare !== query ? html`<button class="button" onClick=${() => setParams({ q: bare })}>Without filters</button>` : null}><p>Fewer or other words may help. A star finds beginnings: <code>connec*</code> finds “connection”.</p><//>`;
};

function HitHead({ hit, own }) {
  const to = hit.session ? sessionAddress(hit.session.split("/")[0]) : addressOf(hit);
  return html`<div class="hit-head">${hit.runtime ? html`<${RuntimeMark} runtime=${hit.runtime} bare />` : null}<a class="cut" href=${to} title=${shown(hit.title)}>${shown(hit.title || hit.session || hit.commit)}</a><span class="grow"></span><span class="dim xs">${hit.project ? shown(pathEnd(hit.project)) + " · " : ""}${day(hit.time)}${own > 1 ? ` · ${own} hits` : ""}</span></div>`;
}

function Hit({ hit, n, chosen }) {
  return html`<a id=${"hit-" + n} class=${names("hit", { chosen })} href=${addressOf(hit)} aria-current=${chosen ? "true" : null}>
    <span class="hit-role dim xs" title=${moment(hit.time)}>${ROLES[hit.role] || hit.role}${hit.tool ? html`<span class="cut mono">${shown(hit.tool)}</span>` : null}</span>
    <span class=${names("hit-text", { mono: hit.role === "call" || hit.role === "result" })}>${hit.problem ? html`<span class="dim">${shown(hit.problem)}</span>` : html`<${Spots} text=${hit.snippet} spots=${hit.highlights} />`}</span>
  </a>`;
}
