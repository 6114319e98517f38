// What is selected among the lanes, where the time went, and how work was handed on; and the lanes as a table.
import { sessionAddress } from "../address.js";
import { html } from "../html.js";
import { Agent, Icon } from "../marks.js";
import { useAnswer } from "../states.js";
import { clock, count, duration, money, plural, shown } from "../words.js";
import { isoOf } from "./lane_drawing.js";
import { nameOf } from "./transcript.js";

const SPENT = [["tool", "Tools"], ["thinking", "Thinking"], ["answer", "Answers"], ["waiting", "Waiting for sub-agents"], ["compaction", "Compaction"], ["prompt", "Waiting for you"]];
const seconds = (micros) => duration(micros / 1e6);

export const laneName = (lane) => (lane.parent !== null && lane.title ? lane.title : lane.name);

export function LanePanel({ page, part, selected, order, choose }) {
  return html`<section class="lanes-foot" aria-label="What is selected">
    ${selected ? html`<${Selected} key=${selected.lane.agent} page=${page} selected=${selected} order=${order} close=${() => choose(null)} />` : html`<div class="lanes-hint dim sm"><p>Click a bar to see what was done. <kbd>.</kbd> <kbd>,</kbd> next and previous, <kbd>h</kbd> <kbd>l</kbd> agent, <kbd>e</kbd> next failure, <kbd>+</kbd> <kbd>-</kbd> zoom, <kbd>f</kbd> all of it.</p></div>`}
    <${Spent} lanes=${selected ? [selected.lane] : part.lanes} name=${selected && part.lanes.length > 1 ? laneName(selected.lane) : ""} />
    <${Delegation} part=${part} made=${Math.max(0, (page.agents || []).length - 1)} />
  </section>`;
}

function Selected({ page, selected, order, close }) {
  const { lane, segment, mark, record } = selected;
  const name = laneName(lane);
  const own = lane.session || page.session;
  const [row] = useAnswer("transcript_row", { session: own, id: record?.id || "", index: record?.index || 0 }, { key: own + (record ? nameOf(record) : ""), skip: !record });
  const link = sessionAddress(own, { record: record ? nameOf(record) : "" });
  const failed = row?.call?.failed;
  return html`<div class="lanes-selected">
    <div class="row"><${Agent} name=${name} order=${order(lane)} /><span class="dim sm">${segment ? `${clock(isoOf(segment[0]), true)}, for ${seconds(segment[1] - segment[0])}` : mark ? clock(isoOf(mark[0]), true) : `${plural(lane.steps, "step")}, ${plural(lane.calls, "call")}`}</span>${failed ? html`<span class="tag alert">✕ failed</span>` : null}
      <span class="grow"></span><a class="button" href=${link}>Transcript <kbd>↵</kbd></a><button class="icon-button" aria-label="Close" onClick=${close}><${Icon} name="close" /></button></div>
    ${!record ? html`<p class="sm dim">${lane.parent !== null ? "Asked for by another agent." : "The session's own agent."} ${lane.price_usd_micros !== null ? money(lane.price_usd_micros) + " at list price." : ""} <kbd>.</kbd> steps through what it did.</p>` : row ? html`<${Brief} row=${row} />` : html`<p class="dim sm">…</p>`}
  </div>`;
}

const KINDS = { prompt: "Prompt", answer: "Answer", thinking: "Thought", injected: "Injected", instructions: "Instructions", notice: "Notice", error: "Error", compaction: "Compaction", agent: "Agent", edit: "Edit", result: "Result", unread: "Unread" };

/** A row in a few lines. */
export function Brief({ row }) {
  const { call } = row;
  if (!call) return html`<div class="brief"><div class="brief-head"><b>${KINDS[row.kind] || row.kind}</b> <span class="dim">${shown(row.title)}</span></div><p class="brief-text" tabindex="0">${shown((row.text || "").slice(0, 2000)) || html`<span class="dim">No words</span>`}</p></div>`;
  return html`<div class=${"brief" + (call.failed ? " failed" : "")}><div class="brief-head"><${Icon} name=${call.category} /><b>${shown(call.tool)}</b> <code class="cut">${shown(call.what)}</code></div><pre class="brief-text" tabindex="0">${shown((call.result || "").trim().slice(0, 2000)) || (call.answered ? "No output" : "No result")}</pre></div>`;
}

function Spent({ lanes, name }) {
  const sums = Object.fromEntries(SPENT.map(([kind]) => [kind, lanes.reduce((sum, lane) => sum + (lane.spent[kind] || 0), 0)]));
  const all = Object.values(sums).reduce((a, b) => a + b, 0);
  return html`<div><h2 class="cut">Where the time went${name ? html` <span class="dim">${shown(name)}</span>` : null}</h2>
    <table class="spent"><tbody>${SPENT.filter(([kind]) => sums[kind]).map(([kind, words]) => html`<tr><th scope="row">${words}</th><td class="spent-bar" aria-hidden="true"><i style=${{ width: `${Math.max(1, (sums[kind] / all) * 100)}%` }}></i></td><td class="number">${Math.round((sums[kind] / all) * 100)} %</td><td class="number dim">${seconds(sums[kind])}</td></tr>`)}</tbody></table>
    ${all ? null : html`<p class="dim sm">Nothing took time here.</p>`}</div>`;
}

/** `made`: how many sub-agents the session has; one of whom no record has a time has no lane. */
function Delegation({ part, made }) {
  const below = part.lanes.filter((lane) => lane.parent !== null);
  const failed = part.lanes.reduce((sum, lane) => sum + lane.failed, 0);
  const calls = part.lanes.reduce((sum, lane) => sum + lane.calls, 0);
  const errand = (lane) => Math.max(lane.returned[0], lane.segments.at(-1)?.[1] ?? 0) - lane.told[0]; // one in the background goes on
  const longest = below.filter((lane) => lane.told && lane.returned).sort((a, b) => errand(b) - errand(a))[0];
  const all = Math.max(below.length, made);
  return html`<div><h2>${all ? "Delegation" : "In this window"}</h2><dl class="pairs">
    ${all ? html`<dt>Sub-agents</dt><dd>${count(all)}${below.length < all ? `, ${count(below.length)} with a lane` : ""}</dd>` : null}
    ${below.length ? html`<dt>At work at once</dt><dd>up to ${count(part.at_once)}</dd><dt>Saved by working at once</dt><dd>${seconds(part.saved_us)}</dd>` : null}
    ${longest ? html`<dt>Longest errand</dt><dd class="cut">${shown(laneName(longest))}, ${seconds(errand(longest))}</dd>` : null}
    <dt>At work</dt><dd>${seconds(part.busy_us)}</dd>
    <dt>Failed calls</dt><dd class=${failed ? "alert" : ""}>${count(failed)} of ${count(calls)}</dd>
  </dl></div>`;
}

/** The same as the drawing, for whoever does not see it. */
export const LaneTable = ({ lanes }) => html`<div class="screen-reader"><table>
  <caption>Agents of this session and how long each did what</caption>
  <thead><tr><th scope="col">Agent</th><th scope="col">From</th><th scope="col">To</th>${SPENT.map(([, words]) => html`<th scope="col">${words}</th>`)}<th scope="col">Calls</th><th scope="col">Failed</th></tr></thead>
  <tbody>${lanes.slice(0, 200).map((lane) => html`<tr><th scope="row">${shown(laneName(lane))}</th><td>${lane.segments.length ? clock(isoOf(lane.segments[0][0]), true) : ""}</td><td>${lane.segments.length ? clock(isoOf(lane.segments.at(-1)[1]), true) : ""}</td>${SPENT.map(([kind]) => html`<td>${seconds(lane.spent[kind] || 0)}</td>`)}<td>${lane.calls}</td><td>${lane.failed}</td></tr>`)}</tbody>
</table></div>`;
