// Commits: what a conversation knew at each point, over sessions and runtimes, as a branching drawing.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, commitAddress, go, sessionAddress, setParams, withParams } from "../address.js";
import { html, names } from "../html.js";
import { useKeys } from "../keys.js";
import { List } from "../list.js";
import { AgentMark, Gauge, RuntimeMark } from "../marks.js";
import { ask, onChanges } from "../server.js";
import { Loading, Problem, State, copyLink, useAnswer, useLast } from "../states.js";
import { clock, count, day, few, moment, plural, runtimeName, shown } from "../words.js";
import { CommitPanel } from "./commit-panel.js";
import { Continue } from "./continue.js";
import { Gutter, Legend, gutterWidth, withLines } from "./gutter.js";

/** Every commit of the store (`/commits`), or the tree around one of them (`/c/CTX`). */
export function Commits() {
  const { commit } = address.value;
  const [turn, setTurn] = useState(0);
  useEffect(() => onChanges((changes) => changes.some((one) => one.kind === "commit" || one.kind === "name" || one.kind === "session") && setTurn((n) => n + 1)), []);
  useEffect(() => {
    document.title = (commit || "Commits") + " · Harken";
    return () => (document.title = "Harken");
  }, [commit]);
  return html`<main id="main" class="commits-page">
    <h1 class="screen-reader">${commit ? `Commit ${shown(commit)} and the tree around it` : "Commits"}</h1>
    <${Tree} key=${commit} about=${commit ? { ref: commit } : {}} wanted=${commit} version=${turn} />
  </main>`;
}

/** The commits of a session, with whatever branches off from them. */
export const SessionCommits = ({ page, version }) =>
  html`<div class="commits-page"><h2 class="screen-reader">Commits of this session</h2><${Tree} about=${{ session: page.session }} version=${version} page=${page} /></div>`;

function Tree({ about, wanted = "", version, page = null }) {
  const { params } = address.value;
  const folded = params.get("z") !== "all";
  const straight = params.get("line") === "straight" && Boolean(about.ref || about.session);
  const superseded = params.get("rewound") === "1";
  const asked = { ...about, folded, straight, superseded };
  const source = JSON.stringify(asked);
  const [own, setOwn] = useState(0); // what was changed from here
  const [head, problem, again] = useAnswer("commit_rows", { ...asked, start: 0, limit: 1 }, { key: source + version + own });
  const [known, setKnown] = useState({ source: "", total: null, columns: 1, commits: null });
  const [chosen, setChosen] = useState(null);
  const [continuing, setContinuing] = useState(null);
  const list = useRef(null);
  const lines = useRef({ source: "", at: new Map() });
  const rowsByName = useRef(new Map());
  const marks = { A: params.get("A") || "", B: params.get("B") || "" };
  const name = params.get("c") || wanted;

  const latest = useRef(source);
  latest.current = source;
  useMemo(() => rowsByName.current.clear(), [source]); // in another drawing a commit has another place
  const load = async (start, n) => {
    const answer = await ask("commit_rows", { ...asked, start, limit: n });
    if (latest.current !== source) return [];
    if (lines.current.source !== source + version + own) lines.current = { source: source + version + own, at: new Map() };
    const [rows, rest] = withLines(answer.rows, lines.current.at.get(start));
    lines.current.at.set(start + rows.length, rest);
    for (const row of rows) for (const id of row.ids) rowsByName.current.set(id, row);
    setKnown((before) => {
      const old = before.source === source ? before : { columns: 1, total: 0 };
      const seen = start + rows.length + (answer.more ? n : 0);
      return { source, total: answer.total ?? Math.max(old.total || 0, seen), commits: answer.commits, columns: Math.max(old.columns, ...rows.map((row) => row.width)) };
    });
    return rows;
  };
  const current = known.source === source ? known : { total: head ? (head.total ?? 1) : null, columns: 1, commits: head?.commits };

  // The commit that the address names is selected as soon as its row is known.
  useEffect(() => {
    if (!name) return void setChosen(null);
    const found = findRow(rowsByName.current, name);
    if (found && found.n !== chosen?.n) list.current?.scrollTo(found.n, { onlyIfHidden: true });
    if (found) setChosen(found);
  }, [name, known]);
  useRecord(page, params, rowsByName, known);
  const select = (row) => {
    setChosen(row);
    setParams({ c: row ? row.short : null, drop: null }, { replace: true });
  };
  const step = (by) => {
    const from = chosen ? chosen.n : -1;
    const n = Math.max(0, Math.min((current.total || 1) - 1, from + by));
    list.current?.scrollTo(n, { onlyIfHidden: true });
    const row = list.current?.get(n);
    if (row) select(row);
  };
  const mark = (letter) => (chosen ? void setParams({ [letter]: marks[letter] === chosen.short ? null : chosen.short, drop: null }, { replace: true }) : false);
  useKeys({
    next: () => step(1),
    previous: () => step(-1),
    first: () => (list.current?.scrollTo(0), step(-1e9)),
    last: () => (list.current?.scrollToEnd(), step(1e9)),
    markA: () => mark("A"),
    markB: () => mark("B"),
    fold: () => setParams({ z: folded ? "all" : null }, { replace: true }),
    open: () => (chosen?.session ? void go(sessionAddress(chosen.session)) : false),
    copy: () => (chosen ? void copyLink(location.origin + commitAddress(chosen.short)) : false),
    continue: () => (chosen ? void setContinuing(chosen.short) : page ? false : true),
    close: () => {
      if (continuing) return void setContinuing(null);
      if (params.get("drop")) return void setParams({ drop: null }, { replace: true });
      if (marks.A || marks.B) return void setParams({ A: null, B: null }, { replace: true });
      if (chosen && params.get("c")) return void select(null);
      return false;
    },
  });

  if (problem && current.total === null) return html`<${Problem} problem=${problem} again=${again} />`;
  if (current.total === null) return html`<${Loading} what="commits" />`;
  const isOpen = Boolean(marks.A || marks.B || params.get("drop") || chosen);
  return html`<div class=${names("commits", { "with-panel": isOpen })}>
    <${Bar} about=${about} folded=${folded} straight=${straight} superseded=${superseded} known=${current} />
    ${current.total === 0
      ? html`<${State} title="There are no commits yet"><p>Each turn of a session becomes one when it is imported: <code>harken import</code>.</p><//>`
      : html`<div class="commit-table">
          <div class="commit-cells commit-headings" aria-hidden="true"><span style=${{ width: gutterWidth(current.columns) + "px" }}></span><span>What happened</span><span class="cell-who">Who</span><span class="cell-context">Context</span><span class="cell-held">Tokens held</span><span class="cell-time">Time</span></div>
          <${List} handle=${list} source=${source} version=${version + ":" + own + ":" + current.columns} total=${current.total} label="Commits, newest first" itemRole="listitem" class="commit-list" estimate=${37} start=${chosen ? Math.max(0, chosen.n - 5) : 0}
            load=${load} row=${(row) => html`<${Row} row=${row} columns=${current.columns} chosen=${chosen?.short === row.short} mark=${row.ids.length && marks.A && holds(row, marks.A) ? "A" : marks.B && holds(row, marks.B) ? "B" : ""} select=${select} />`} />
        </div>`}
    ${isOpen ? html`<${CommitPanel} row=${chosen} rowOf=${(short) => findRow(rowsByName.current, short)} marks=${marks} dropped=${params.get("drop") || ""} onContinue=${setContinuing} onMark=${mark} changed=${() => setOwn((n) => n + 1)} close=${() => (setChosen(null), go(withParams({ c: null, A: null, B: null, drop: null })))} />` : null}
    <${Legend} />
    ${continuing ? html`<${Continue} page=${page} at=${continuing} close=${() => setContinuing(null)} />` : null}
  </div>`;
}

/** A record that is selected in another view of the session: its commit is chosen here; of a compaction, what it dropped is shown. */
function useRecord(page, params, rows, known) {
  const record = (!params.get("c") && page && params.get("e")) || "";
  const done = useRef("");
  const begin = useLast();
  useEffect(() => {
    if (!record || !known.source || done.current === record) return;
    done.current = record;
    const compaction = [...rows.current.values()].find((row) => row.record === record);
    if (compaction) return void setParams({ c: compaction.short, drop: compaction.short }, { replace: true });
    const message = record.replace(/\.\d{1,6}$/, "");
    const isLast = begin();
    ask("show", { ref: `${page.session}@${message}`, content: false }).then(
      (commit) => isLast() && setParams({ c: commit.short, drop: commit.commit_type === "compaction" ? commit.short : null }, { replace: true }),
      () => null, // it is in no commit of this chain: nothing is chosen
    );
  }, [record, known.source]);
}

/** The row that a short or a full name belongs to. */
function findRow(rows, name) {
  const digits = name.replace(/^ctx-/, "");
  if (rows.has(digits)) return rows.get(digits);
  for (const [id, row] of rows) if (row.short === name || (digits.length >= 8 && id.startsWith(digits))) return row;
  return null;
}

const holds = (row, short) => row.short === short || row.ids.some((id) => id.startsWith(short.replace(/^ctx-/, "")));

function Bar({ about, folded, straight, superseded, known }) {
  const inside = Boolean(about.ref || about.session);
  const set = (changes) => () => setParams(changes, { replace: true });
  return html`<div class="commit-bar">
    ${about.ref ? html`<span class="tag accent"><span class="id">${shown(about.ref)}</span><a href="/commits" aria-label="All commits">×</a></span>` : null}
    ${inside
      ? html`<div class="segments" role="group" aria-label="What is drawn"><button aria-pressed=${straight ? "false" : "true"} onClick=${set({ line: null })}>Graph</button><button aria-pressed=${straight ? "true" : "false"} onClick=${set({ line: "straight" })}>Straight</button></div>`
      : null}
    <div class="segments" role="group" aria-label="Runs without a prompt"><button aria-pressed=${folded ? "true" : "false"} onClick=${set({ z: null })}>Folded</button><button aria-pressed=${folded ? "false" : "true"} onClick=${set({ z: "all" })}>Every commit</button></div>
    <button class=${names("button", { on: superseded })} aria-pressed=${superseded ? "true" : "false"} onClick=${set({ rewound: superseded ? null : "1" })}>Rewound</button>
    <span class="grow"></span>
    <span class="dim sm" role="status">${known.commits != null && known.total != null ? (folded && known.commits > known.total ? `${plural(known.commits, "commit")} in ${count(known.total)} rows` : plural(known.commits, "commit")) : known.total ? `more than ${count(known.total - 1)} rows` : ""}</span>
  </div>`;
}

function Row({ row, columns, chosen, mark, select }) {
  const held = row.held ?? row.after;
  const choose = (event) => event.target.closest("a,button.link") || select(row);
  return html`<div class=${names("commit-cells commit-row", "is-" + row.kind, { chosen, ["mark-" + mark]: mark })} aria-current=${chosen ? "true" : null} onClick=${choose}>
    <${Gutter} row=${row} columns=${columns} />
    ${row.kind === "folded"
      ? html`<div class="cell-what"><button class="fold-line cut" onClick=${() => select(row)}>${plural(row.commits, "commit")} folded${row.prompts ? ` · ${plural(row.prompts, "prompt")}` : ""}${toolWords(row.tools) ? " · " + toolWords(row.tools) : ""}${row.failed ? html` · <span class="alert">${count(row.failed)} failed</span>` : null}</button></div>`
      : html`<div class="cell-what">
            <div class="commit-title"><${Title} row=${row} select=${select} />${row.names.map((name) => html`<span class=${`commit-name c${row.colour}`} title=${shown(name)}>${shown(name)}</span>`)}${mark ? html`<b class=${"commit-mark " + mark}>${mark}</b>` : null}</div>
            <div class="commit-note cut"><${Note} row=${row} /></div>
          </div>
          <span class="cell-who">${row.spawned || (row.agent && row.agent !== row.runtime) ? html`<span class="agent"><${AgentMark} name=${row.agent} /><span class="cut">${shown(row.agent)}</span></span>` : html`<${RuntimeMark} runtime=${row.runtime} />`}</span>
          <a class="cell-context id" href=${commitAddress(row.short)}>${row.short}</a>
          <span class="cell-held">${held != null ? html`<span>${few(held)}</span><${Gauge} part=${held / windowOf(row)} label=${`${few(held)} of ${few(windowOf(row))} tokens`} />` : null}</span>
          <time class="cell-time" datetime=${row.time} title=${moment(row.time)}>${row.time ? html`${clock(row.time)}<span class="dim xs">${day(row.time)}</span>` : null}</time>`}
  </div>`;
}

/** The room that the row's conversation has: what is usual for its runtime, or the next larger one where it holds more. */
export function windowOf(row) {
  const usual = row.runtime === "codex" ? 272_000 : 200_000;
  return (row.held || 0) > usual ? 1_000_000 : usual;
}

function Title({ row, select }) {
  const words =
    row.kind === "compaction"
      ? html`<b>Compaction</b>${row.before != null || row.after != null ? html` ${few(row.before) || "?"} → ${row.after != null ? few(row.after) + " tokens" : "a summary"}` : ""}`
      : row.unread
        ? html`<span class="alert">Cannot be read: ${shown(row.unread)}</span>`
        : row.text
          ? shown(row.text)
          : row.continues
            ? `Continued in ${runtimeName(row.runtime)}`
            : plural(row.calls, "call");
  return html`${row.said_by === "prompt" ? html`<${AgentMark} you />` : null}<button class=${names("cut commit-words", { quiet: row.superseded })} onClick=${() => select(row)}>${words}</button>`;
}

function Note({ row }) {
  if (row.kind === "compaction") {
    // The link comes first: what does not fit is cut off at the end.
    return html`<button class="link" onClick=${() => setParams({ c: row.short, drop: row.short, A: null, B: null }, { replace: true })}>what it dropped</button>${row.folded_messages != null ? ` · ${plural(row.folded_messages, "message")} folded into a summary` : ""}`;
  }
  const parts = [];
  if (row.continues) parts.push(html`continues <a class="link" href=${commitAddress(row.continues)}>${row.continues}</a>${row.carried != null ? `, ${plural(row.carried, "message")} carried over` : ""}`);
  else if (row.kind === "snapshot" && row.carried != null) parts.push(`snapshot of ${plural(row.carried, "message")}`);
  if (row.superseded) parts.push("rewound");
  if (toolWords(row.tools)) parts.push(toolWords(row.tools));
  if (row.failed) parts.push(html`<span class="alert">${count(row.failed)} failed</span>`);
  if (row.answer) parts.push("→ " + shown(row.answer));
  else if (row.thoughts && !parts.length) parts.push(plural(row.thoughts, "thought"));
  if (row.continued_by?.length) parts.push(html`continued in ${row.continued_by.slice(0, 2).map((name) => html`<a class="link" href=${sessionAddress(name)}>${shown(name).slice(0, 8)}</a> `)}`);
  return parts.map((part, n) => html`${n ? (typeof part === "string" && part.startsWith("→") ? " " : " · ") : ""}${part}`);
}

export const toolWords = (tools) => tools.slice(0, 4).map(([tool, n]) => shown(tool) + (n > 1 ? ` ×${n}` : "")).join(", ") + (tools.length > 4 ? ` +${tools.length - 4}` : "");
