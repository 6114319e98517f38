// How each kind of row looks. A call stands with its result and is drawn by what it does; long texts are folded.
import { useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { Ansi } from "../ansi.js";
import { exported, sessionAddress } from "../address.js";
import { LineDifference, lineCounts } from "../difference.js";
import { html, names } from "../html.js";
import { Markdown } from "../markdown.js";
import { Icon } from "../marks.js";
import { ask } from "../server.js";
import { bytes, clock, count, duration, pathEnd, pieces, plain, plainPlaces, plural, shown } from "../words.js";
import { changesOf, writtenBy } from "./edits.js";
import { SubAgent } from "./subagent.js";

/** Whether every result is unfolded. */
const unfolded = signal(false);
export const foldAll = () => void (unfolded.value = !unfolded.value);

const LINES = 14; // of a result that is not unfolded
export const HEIGHT = 64; // of a row that nobody has seen

const ICONS = { read: "read", search: "search", edit: "edit", command: "command", web: "web", agent: "agent", task: "task", ask: "ask", other: "other" };

export function Row({ row, page, selected, hit, words, select }) {
  const Kind = KINDS[row.kind] || Notice;
  return html`<div class=${names("row-frame", "kind-" + row.kind, { selected, hit })} id=${"row-" + row.n} onClick=${(event) => event.target.closest("a,button,summary,pre,input") || select(row)}>
    <time class="row-time" datetime=${row.time} title=${row.time || ""}>${clock(row.time)}</time>
    <div class="row-body"><${Kind} row=${row} page=${page} words=${words} /></div>
  </div>`;
}

// -- words ---

const Who = ({ row, page, name, extra }) => html`<div class="who"><b>${name || shown(row.who)}</b>${extra}</div>`;

function Prompt({ row, page, words }) {
  return html`<div class="prompt">
    <${Who} row=${row} name=${row.who === "User" ? "You" : shown(row.who)} extra=${row.number ? html`<span class="dim">prompt ${row.number}</span>` : null} />
    <${Words} row=${row} page=${page} words=${words} plain />
    <${Pictures} row=${row} />
  </div>`;
}

function Answer({ row, page, words }) {
  const several = page.agents?.length > 1;
  return html`<div class="answer">${several ? html`<${Who} row=${row} />` : null}<${Words} row=${row} page=${page} words=${words} /><${Pictures} row=${row} /></div>`;
}

/** The text of a row; the rest of one that was cut is asked for. */
function Words({ row, page, words, plain = false }) {
  const [whole, setWhole] = useState(null);
  const text = whole ?? row.text ?? "";
  const more = async () => setWhole((await ask("transcript_row", { session: page.session, id: row.id, index: row.index })).text);
  return html`${words ? html`<div class="plain"><${Marked} text=${text} words=${words} /></div>` : plain ? html`<div class="plain">${shown(text)}</div>` : html`<${Markdown} text=${text} />`}
    ${row.cut && whole === null ? html`<button class="link sm" onClick=${more}>${count(row.cut)} more characters</button>` : null}`;
}

/** Text in which what is looked for is marked. */
export function Marked({ text, words }) {
  const [lower, placeOf] = plainPlaces(text);
  const wanted = pieces(words);
  const parts = [];
  let from = 0;
  while (parts.length < 400) {
    const next = wanted.map((word) => [lower.indexOf(word, from), word.length]).filter(([at]) => at >= 0).sort((a, b) => a[0] - b[0])[0];
    if (!next) break;
    const [start, end] = [placeOf(next[0]), placeOf(next[0] + next[1])];
    parts.push(shown(text.slice(placeOf(from), start)), html`<mark>${shown(text.slice(start, end))}</mark>`);
    from = next[0] + next[1];
  }
  return [...parts, shown(text.slice(placeOf(from)))];
}

const hasAny = (text, words) => Boolean(words && text) && pieces(words).some((word) => plain(text).includes(word));

const firstLine = (text) => (text || "").trim().split("\n")[0].slice(0, 240);

function Thinking({ row, page, words }) {
  return html`<details class="thinking" open=${hasAny(row.text, words)}>
    <summary><${Icon} name="thought" label="Thought" /><span class="cut">${shown(firstLine(row.text)) || "Sealed reasoning"}</span></summary>
    <${Words} row=${row} page=${page} words=${words} />
  </details>`;
}

function Folded({ row, page, words }) {
  return html`<details class="folded" open=${hasAny(row.text, words)}>
    <summary><span class="cut"><b>${shown(row.title) || row.kind}</b> <span class="dim">${shown(firstLine(row.text))}</span></span></summary>
    <${Words} row=${row} page=${page} words=${words} plain />
    <${Pictures} row=${row} />
  </details>`;
}

const Notice = ({ row, words }) => html`<p class="notice">${row.title ? html`<b>${shown(row.title)}</b> ` : null}${words ? html`<${Marked} text=${row.text || ""} words=${words} />` : shown(row.text)}</p>`;

const Failure = ({ row, words }) => html`<p class="notice alert"><span aria-hidden="true">✕</span> ${words ? html`<${Marked} text=${row.text || ""} words=${words} />` : shown(row.text)}</p>`;

function Compaction({ row, page }) {
  const about = row.compaction || {};
  return html`<div class="compaction">
    <span class="compaction-line"><b>◆ Context compacted</b>
      ${about.before && about.after ? html`<span>${count(about.before)} → ${count(about.after)} tokens</span>` : null}
      ${about.folded ? html`<span>${plural(about.folded, "message")} became a summary</span>` : null}
      ${exported ? null : html`<a class="link" href=${sessionAddress(page.session, { view: "commits", record: row.id })}>what it dropped</a>`}
    </span>
    ${row.text ? html`<details><summary class="dim sm">The summary</summary><${Words} row=${row} page=${page} plain /></details>` : null}
  </div>`;
}

function Pictures({ row }) {
  if (!row.pictures?.length) return null;
  return html`<div class="pictures">${row.pictures.map(
    (picture) =>
      picture.url ? html`<figure><img src=${picture.url} alt="A picture in the transcript" loading="lazy" /><figcaption class="dim xs">${shown(picture.media_type)} ${bytes(picture.bytes)}</figcaption></figure>` : html`<span class="dim sm">A picture (${shown(picture.media_type)}) that is not shown</span>`,
  )}</div>`;
}

// -- calls ---

function Call({ row, page, words }) {
  const call = row.call;
  const Body = BODIES[bodyOf(call)];
  const open = unfolded.value || call.failed || opensByItself(call) || Boolean(row.pictures?.length) || Boolean(words && holds(row, words));
  return html`<details class=${names("call", "call-" + call.category, { failed: call.failed })} open=${open}>
    <summary>
      <${Icon} name=${ICONS[call.category] || "other"} />
      <b class="call-tool">${shown(call.tool)}</b>
      <span class="call-what cut">${words ? html`<${Marked} text=${whatOf(call)} words=${words} />` : shown(whatOf(call))}</span>
      ${call.category === "command" && typeof call.input?.description === "string" ? html`<span class="call-note cut">${shown(call.input.description)}</span>` : null}
      <span class="call-end">
        ${counts(call)}
        ${call.failed ? html`<b class="alert">✕ failed</b>` : call.answered ? null : html`<span class="dim">no result</span>`}
        ${call.took_ms != null && call.took_ms >= 100 ? html`<span class="dim">${duration(call.took_ms / 1000)}</span>` : null}
      </span>
    </summary>
    ${call.session ? html`<${SubAgent} call=${call} />` : null}
    <${Body} call=${call} row=${row} page=${page} words=${words} />
    <${Pictures} row=${row} />
  </details>`;
}

const holds = (row, words) => hasAny(`${row.text || ""}\n${row.call.result || ""}\n${JSON.stringify(row.call.input)}`, words);
const whatOf = (call) => (call.category === "read" || call.category === "edit" ? pathEnd(call.what, 3) : call.what) || "";
const opensByItself = (call) => call.category === "edit" || call.category === "task" || call.category === "agent" || call.category === "ask" || (call.category === "command" && (call.result || "").length < 4000);

function counts(call) {
  const [change, ...more] = call.category === "edit" ? changesOf(call.input) : [];
  const found = change && !more.length ? lineCounts(change.before, change.after) : null;
  return found ? html`<span><span class="added">+${found.added}</span> <span class="removed">−${found.removed}</span></span>` : null;
}

function bodyOf(call) {
  const input = call.input;
  if (!input || typeof input !== "object") return "plain";
  if (call.category === "command") return "command";
  if (call.category === "edit" && changesOf(input).length) return "edit";
  if (call.category === "edit" && writtenBy(input) !== null) return "written";
  if (call.category === "task" && Array.isArray(input.todos || input.plan)) return "todos";
  return "plain";
}

/** A result, folded after some lines. */
function Result({ call, row, page, words, terminal = false }) {
  const [whole, setWhole] = useState(null);
  const text = whole ?? call.result ?? "";
  if (!text) return null;
  const lines = text.split("\n");
  const folded = whole === null && !unfolded.value && !words && lines.length > LINES;
  const more = async () => setWhole(call.result_cut ? (await ask("transcript_row", { session: page.session, id: row.id, index: row.index })).call.result : text);
  const part = folded ? lines.slice(0, LINES).join("\n") : text;
  return html`<pre class=${names("result", { failed: call.failed })} tabindex="0">${words ? html`<${Marked} text=${part} words=${words} />` : terminal ? html`<${Ansi} text=${part} />` : shown(part)}</pre>
    ${folded || (call.result_cut && whole === null) ? html`<button class="link sm" onClick=${more}>${folded ? plural(lines.length - LINES, "more line") : "The rest"}${call.result_cut ? `, ${count(call.result_cut)} more characters` : ""}</button>` : null}`;
}

const Command = (props) => {
  const { input } = props.call;
  const given = [input.command ?? input.cmd ?? input.script].flat().filter((one) => typeof one === "string").join(" ");
  return html`${given.includes("\n") || given.length > 100 ? html`<pre class="given">${shown(given)}</pre>` : null}<${Result} ...${props} terminal />`;
};

function Edit({ call, row, page, words }) {
  const edits = changesOf(call.input);
  return html`${edits.slice(0, 20).map((one) => html`<${LineDifference} before=${one.before} after=${one.after} path=${one.path} />`)}
    ${edits.length > 20 ? html`<p class="dim sm pad">${edits.length - 20} more edits</p>` : null}
    ${call.failed ? html`<${Result} call=${call} row=${row} page=${page} words=${words} />` : null}`;
}

const linesOf = (text) => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);

function Written({ call, row, page, words }) {
  return html`<details class="written"><summary class="dim sm">${plural(linesOf(writtenBy(call.input)), "line")} written</summary><pre class="given">${shown(writtenBy(call.input))}</pre></details>${call.failed ? html`<${Result} call=${call} row=${row} page=${page} words=${words} />` : null}`;
}

const DONE = { completed: "☑", done: "☑", in_progress: "◐", pending: "☐" };

function Todos({ call }) {
  const given = call.input.todos || call.input.plan;
  return html`<ul class="todos">${given.slice(0, 60).map((one) => {
    const state = String(one?.status || "pending");
    return html`<li class=${"todo-" + (DONE[state] ? state : "pending")}><span aria-label=${state}>${DONE[state] || "☐"}</span> ${shown(String(one?.content ?? one?.description ?? one?.step ?? one?.text ?? ""))}</li>`;
  })}${given.length > 60 ? html`<li class="dim sm">${given.length - 60} more</li>` : null}</ul>`;
}

function Plain(props) {
  const { call } = props;
  const input = call.input;
  const pairs = input && typeof input === "object" && !Array.isArray(input) ? Object.entries(input) : input ? [["", input]] : [];
  const told = pairs.filter(([, value]) => !(typeof value === "string" && value === call.what));
  return html`${told.length
      ? html`<dl class="given-pairs" tabindex="0">${told.slice(0, 30).map(([name, value]) => html`${name ? html`<dt>${shown(name)}</dt>` : null}<dd class="plain">${shown(typeof value === "string" ? value : JSON.stringify(value, null, 1))}</dd>`)}${told.length > 30 ? html`<dd class="dim">${told.length - 30} more</dd>` : null}</dl>`
      : null}
    ${call.input_cut ? html`<p class="dim sm pad">${count(call.input_cut)} more characters of arguments</p>` : null}
    <${Result} ...${props} />`;
}

const BODIES = { command: Command, edit: Edit, written: Written, todos: Todos, plain: Plain };
const KINDS = { prompt: Prompt, answer: Answer, thinking: Thinking, call: Call, result: Folded, injected: Folded, instructions: Folded, compaction: Compaction, error: Failure, unread: Failure, notice: Notice, edit: Notice, agent: Notice };
