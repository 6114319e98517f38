// The transcript of a session: an outline by prompt, the rows, a map of the whole, and what belongs to the selection.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, exported, setParams } from "../address.js";
import { useDrawn } from "../drawing.js";
import { html, names } from "../html.js";
import { useKeys } from "../keys.js";
import { List } from "../list.js";
import { Icon, Strip } from "../marks.js";
import { ask } from "../server.js";
import { Loading, Problem, State, tell, useAnswer, useLast } from "../states.js";
import { clock, count, few, moment, pathEnd, plural, shown } from "../words.js";
import { FindBar, useFind } from "./find.js";
import { Minimap } from "./minimap.js";
import { Row, foldAll, HEIGHT } from "./rows.js";

const FIRST = 40; // rows that fill a window

/** What is asked for first; the server puts the answer to just this into the page (first_answers.py). Whoever wants to get
 * to a place has to know of all rows. */
export const firstRows = (session, params) => ({ session, start: 0, count: FIRST, soon: !params.get("e") && !params.get("q") });

export function Transcript({ page, version }) {
  const { params } = address.value;
  const wanted = params.get("e") || "";
  const first = useMemo(() => firstRows(page.session, params), [page.session]);
  const [head, problem, again] = useAnswer("transcript", version ? { session: page.session, start: 0, count: 1 } : first, { key: page.session });
  const [total, setTotal] = useState(head ? head.total : null);
  const [isCounted, setCounted] = useState(false); // whether that is all of them
  const noteAll = (answer) => (setTotal(answer.total), setCounted(!answer.partial), answer.rows);
  const isDrawn = useDrawn(total !== null); // what is large or takes long comes behind the first rows
  const [counted] = useAnswer("transcript", { session: page.session, start: 0, count: 0 }, { key: page.session, skip: !(head?.partial && isDrawn) });
  const [outline, , againOutline] = useAnswer("transcript_outline", { session: page.session }, { key: page.session, skip: !isDrawn });
  const [view, setView] = useState([0, 0]);
  const [seen, setSeen] = useState(null); // how many rows there were when the reader scrolled away
  const [selected, setSelected] = useState(null);
  const list = useRef(null);
  const find = useFind(page.session, list);

  useLayoutEffect(() => void (head && setTotal(head.total)), [head]);
  useLayoutEffect(() => void (counted && noteAll(counted)), [counted]);
  useEffect(() => void (version && (againOutline(), version > 1 && again())), [version]);
  const arrived = useDeepLink(page.session, wanted, list, total, setSelected);

  const begin = useLast();
  const select = (row) => {
    begin(); // a row that is still on its way is not wanted any more
    wantEnd("");
    arrived(row ? nameOf(row) : ""); // who selects a row sees it: it stays where it is
    setSelected(row);
    setParams({ e: row ? nameOf(row) : null }, { replace: true });
  };
  const step = (by) => {
    const from = selected ? selected.n : by > 0 ? view[0] - 1 : view[1] + 1;
    const n = Math.max(0, Math.min((total || 1) - 1, from + by));
    jump(n, true);
  };
  const jump = async (n, near = false) => {
    list.current?.scrollTo(n, near ? { onlyIfHidden: true } : {});
    const isLast = begin();
    const row = list.current?.get(n) || (await ask("transcript", { session: page.session, start: n, count: 1 })).rows[0];
    if (row && isLast()) select(row);
  };
  const among = (marks, by) => {
    if (!marks?.length) return false;
    const from = selected ? selected.n : by > 0 ? view[0] - 1 : view[1] + 1;
    const next = by > 0 ? marks.find((one) => one.n > from) : marks.findLast((one) => one.n < from);
    if (next) jump(next.n);
    return true;
  };
  const isWhole = !head?.partial || isCounted;
  const wantEnd = useEnd(isWhole, (how) => (list.current?.scrollToEnd(), how === "selected" && total && jump(total - 1, true)));
  useKeys({
    next: () => step(1),
    previous: () => step(-1),
    first: () => jump(0),
    last: () => wantEnd("selected"),
    nextPrompt: () => among(outline?.prompts, 1),
    previousPrompt: () => among(outline?.prompts, -1),
    nextError: () => among(outline?.failures, 1),
    previousError: () => among(outline?.failures, -1),
    unfoldAll: foldAll,
    filter: () => find.open(),
    nextHit: () => find.step(1),
    previousHit: () => find.step(-1),
    open: () => (selected ? document.querySelector(`[data-n="${selected.n}"] summary`)?.click() : false),
    close: () => (find.isOpen ? find.close() : false),
  });

  if (problem && total === null) return html`<${Problem} problem=${problem} again=${again} />`;
  if (total === null) return html`<${Loading} what="the transcript" />`;
  if (!total) return html`<${State} title="Nothing was said here yet"><p>The session is known, and has no words, calls or notices.</p><//>`;
  return html`<div class="transcript">
    <${Outline} outline=${outline} at=${view[0]} jump=${jump} />
    <div class="reading">
      <${FindBar} find=${find} />
      <${List}
        handle=${list}
        source=${page.session}
        total=${total}
        partial=${!isWhole}
        version=${version}
        follow=${page.running}
        label="Transcript"
        class="rows"
        estimate=${HEIGHT}
        known=${version ? null : head?.rows}
        load=${async (start, n) => !start && !version && head?.rows.length === Math.min(n, head.total) ? head.rows : ask("transcript", { session: page.session, start, count: n }).then(noteAll)}
        onView=${(first, last) => (first !== view[0] || last !== view[1]) && setView([first, last])}
        onScroll=${(atEnd) => setSeen(atEnd ? null : seen ?? total)}
        row=${(row) => html`<${Row} key=${nameOf(row)} row=${row} page=${page} selected=${selected && nameOf(selected) === nameOf(row)} hit=${row.n === find.hits[find.at]} words=${find.wordsIn(row.n)} select=${select} />`}
      />
      ${isWhole ? null : html`<p class="counting" role="status">Counting the rows: there are more than ${count(total)}</p>`}
      ${page.running && seen !== null && total > seen ? html`<button class="button primary new-pill" onClick=${() => (setSeen(null), list.current.scrollToEnd())}>${count(total - seen)} new <${Icon} name="down" /></button>` : null}
    </div>
    <${Minimap} outline=${outline} total=${total} view=${isWhole && view} hits=${find.hits} jump=${(n) => list.current?.scrollTo(n)} />
    <${Side} page=${page} outline=${outline} selected=${selected} jump=${jump} />
    <div class="screen-reader" aria-live="polite">${page.running ? plural(total, "row") : ""}</div>
  </div>`;
}

/** What a row is called in an address. */
export const nameOf = (row) => (row.index ? `${row.id}.${row.index}` : row.id);

export function splitName(name) {
  const found = /^(.*)\.(\d{1,6})$/.exec(name);
  return found ? [{ id: found[1], index: Number(found[2]) }, { id: name, index: 0 }] : [{ id: name, index: 0 }];
}

/** Bring the record that the address names into sight, once. Gives what says that it is in sight already. */
function useDeepLink(session, wanted, list, total, setSelected) {
  const done = useRef("");
  useEffect(() => {
    if (total === null || done.current === wanted) return undefined;
    done.current = wanted;
    if (!wanted) return void setSelected(null);
    let stopped = false;
    (async () => {
      for (const place of splitName(wanted)) {
        try {
          const { n } = await ask("transcript_place", { session, ...place });
          if (stopped) return;
          list.current?.scrollTo(n);
          const { rows } = await ask("transcript", { session, start: n, count: 1 });
          if (!stopped) setSelected(rows[0] || null);
          return;
        } catch (problem) {
          if (problem.code !== "not_found") return;
        }
      }
      if (!stopped) tell("This session has no such record");
    })();
    return () => (stopped = true);
  }, [wanted, total === null]);
  return (name) => void (done.current = name);
}

/** Gives what goes to the end: at once, or as soon as all rows are counted, for before that nobody knows where it is. */
function useEnd(isWhole, go) {
  const [how, want] = useState(""); // "" | "seen" | "selected"
  useEffect(() => {
    if (!how || !isWhole) return;
    want("");
    go(how);
  }, [how, isWhole]);
  useEffect(() => {
    if (isWhole) return undefined;
    const press = ({ key, target }) => void (key === "End" && !target.closest?.("input, textarea, nav, aside, [aria-modal=true]") && want("seen"));
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [isWhole]);
  return want;
}

function Outline({ outline, at, jump }) {
  const list = useRef(null);
  const marks = useMemo(() => {
    const prompts = (outline?.prompts || []).map((one, n) => ({ ...one, number: n + 1 }));
    const folds = (outline?.compactions || []).map((one) => ({ ...one, number: 0 }));
    return [...prompts, ...folds].sort((a, b) => a.n - b.n);
  }, [outline]);
  const current = marks.findLastIndex((one) => one.number && one.n <= at + 1);
  useEffect(() => void (current >= 0 && list.current?.scrollTo(current, { onlyIfHidden: true })), [current]);
  const row = (one, n) =>
    one.number
      ? html`<button class=${names("outline-prompt", { current: n === current })} aria-current=${n === current ? "true" : null} onClick=${() => jump(one.n)}><span class="number">${one.number}</span><span class="cut2">${shown(one.text)}</span>${one.strip ? html`<${Strip} letters=${one.strip} width=${Math.min(200, 6 + one.strip.length * 5)} label=${false} />` : null}</button>`
      : html`<button class="outline-fold" onClick=${() => jump(one.n)}>◆ compacted ${clock(one.time)}</button>`;
  return html`<nav class="outline" aria-label="Prompts">
    <div class="outline-head"><h2>Prompts <span class="dim">${outline ? count(outline.counts.prompts) : ""}</span></h2><span><kbd>J</kbd> <kbd>K</kbd></span></div>
    ${marks.length ? html`<${List} handle=${list} source=${marks} total=${marks.length} label="Prompts" itemRole="listitem" estimate=${42} load=${async (start, n) => marks.slice(start, start + n)} row=${row} />` : null}
  </nav>`;
}

/** How often a file was changed. */
const changed = (file) => Object.entries(file.ops).reduce((sum, [op, n]) => (op === "read" || op === "search" ? sum : sum + n), 0);

const CommitName = ({ name }) => (exported ? name : html`<a class="link" href=${"/c/" + name}>${name}</a>`);

/** Whether anybody counted: nothing known is not nothing used. */
const isCounted = (tokens) => Object.values(tokens || {}).some((n) => n !== null);

function Side({ page, outline, selected, jump }) {
  const files = outline?.files || [];
  const [all, setAll] = useState(false);
  return html`<aside class="side" aria-label="About this session">
    ${files.length
      ? html`<section><h2>Files <span class="dim">${count(files.length)}</span></h2>
          <ul class="files">${(all ? files : files.slice(0, 8)).map((file) => html`<li><button onClick=${() => jump(file.rows[0])} title=${shown(file.path)}><${Icon} name=${changed(file) ? "edit" : "read"} /><span class="cut">${shown(pathEnd(file.path))}</span><span class="dim xs">${changed(file) ? plural(changed(file), "change") : `read ×${count(file.ops.read || file.rows.length)}`}</span></button></li>`)}</ul>
          ${files.length > 8 ? html`<button class="link sm" onClick=${() => setAll(!all)}>${all ? "fewer" : `${files.length - 8} more`}</button>` : null}</section>`
      : null}
    ${selected
      ? html`<section><h2>This row</h2><dl class="pairs">
          <dt>Record</dt><dd class="id cut" title=${selected.id}>${shown(selected.id)}</dd>
          ${selected.time ? html`<dt>When</dt><dd>${moment(selected.time)}</dd>` : null}
          ${selected.who ? html`<dt>Who</dt><dd class="cut">${shown(selected.who)}</dd>` : null}
          ${selected.model ? html`<dt>Model</dt><dd class="cut">${shown(selected.model)}</dd>` : null}
          ${selected.call?.took_ms != null ? html`<dt>Took</dt><dd>${(selected.call.took_ms / 1000).toFixed(1)} s</dd>` : null}
          ${selected.commit ? html`<dt>Commit</dt><dd class="id"><${CommitName} name=${selected.commit} /></dd>` : null}
        </dl></section>`
      : null}
    <section><h2>Session</h2><dl class="pairs">
      <dt>Id</dt><dd class="id cut" title=${page.session}>${shown(page.session)}</dd>
      ${page.tip ? html`<dt>Newest commit</dt><dd class="id"><${CommitName} name=${page.tip} /></dd>` : null}
      ${page.started ? html`<dt>Began</dt><dd>${moment(page.started)}</dd>` : null}
      ${isCounted(page.figures?.tokens) ? html`<dt>Tokens in</dt><dd>${few((page.figures.tokens.input || 0) + (page.figures.tokens.cache_read || 0) + (page.figures.tokens.cache_write || 0))}</dd><dt>Tokens out</dt><dd>${few(page.figures.tokens.output)}</dd>` : null}
      ${page.project ? html`<dt>Folder</dt><dd class="cut" title=${shown(page.project)}>${shown(pathEnd(page.project, 2))}</dd>` : null}
    </dl></section>
  </aside>`;
}
