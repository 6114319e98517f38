// What a compaction dropped: how much stood before it, what of it the summary still names, and what it does not.
import { useState } from "preact/hooks";
import { sessionAddress } from "../address.js";
import { html } from "../html.js";
import { ask } from "../server.js";
import { Loading, Problem, useAnswer } from "../states.js";
import { count, few, plural, shown } from "../words.js";
import { Continue } from "./continue.js";

const KINDS = { prompt: "Prompts of yours", answer: "Answers", file: "Files named", call: "Calls", result: "Tool results", thinking: "Thinking", injected: "Injected" };
const ONE = { prompt: "prompt", answer: "answer", call: "call", result: "result", thinking: "thought", injected: "injected" };
const PAGE = 50;

/** `commit`: the compaction's commit, or `session` and `record` where only the record is known. */
export function Dropped({ commit = "", session = "", record = "", row = null }) {
  const request = commit ? { commit: row?.kind === "compaction" ? row.ids[0] : commit } : { session, record };
  const [found, problem, again] = useAnswer("compaction", { ...request, count: PAGE }, { key: JSON.stringify(request) });
  const [more, setMore] = useState([]);
  const [open, setOpen] = useState(false);
  const [continuing, setContinuing] = useState(false);
  if (problem) return html`<${Problem} problem=${problem} again=${again} />`;
  if (!found) return html`<${Loading} what="what the compaction dropped" />`;
  const things = [...found.things, ...more];
  const kept = found.kinds.reduce((sum, one) => sum + one.kept, 0);
  const next = async () => setMore([...more, ...(await ask("compaction", { ...request, start: things.length, count: PAGE })).things]);
  const link = (thing) => (found.session && thing.record ? sessionAddress(found.session, { record: thing.event ? `${thing.record}.${thing.event}` : thing.record }) : "");
  return html`<section>
      <h2>What this compaction dropped</h2>
      <div class="fold-sizes"><span><b>${found.before != null ? few(found.before) : "?"}</b> tokens${found.messages != null ? `, ${plural(found.messages, "message")}` : ""}</span><span><b>${found.after != null ? few(found.after) : "?"}</b>${found.after != null && found.summary_tokens ? `, ${few(found.summary_tokens)} of it the summary` : ""}</span></div>
      <${Funnel} before=${found.before} after=${found.after} />
      <table class="fold-kinds"><thead><tr><th></th><th>before</th><th>in the summary</th>${kept ? html`<th>kept</th>` : null}</tr></thead><tbody>
        ${Object.keys(KINDS).map((kind) => found.kinds.find((one) => one.kind === kind)).filter((one) => one?.before).map((one) => html`<tr><th scope="row">${KINDS[one.kind]}</th><td>${count(one.before)}</td><td>${count(one.named)}</td>${kept ? html`<td>${count(one.kept)}</td>` : null}</tr>`)}
      </tbody></table>
      ${found.trigger ? html`<p class="dim sm">${found.trigger === "auto" ? "The runtime did it by itself." : "Somebody asked for it."}</p>` : null}
    </section>
    ${found.missed.length
      ? html`<section><h2>Not in the summary <span class="tag alert">${plural(found.missed.length, "prompt")} you may miss</span></h2><ul class="only">${found.missed.map((one) => html`<${Thing} thing=${one} to=${link(one)} sign="✕" />`)}</ul></section>`
      : null}
    ${things.length
      ? html`<section><h2>Gone <span class="dim">${count(found.total)}</span></h2><ul class="only">${(open ? things : things.slice(0, 6)).map((one) => html`<${Thing} thing=${one} to=${link(one)} sign=${one.named ? "≈" : "✕"} />`)}</ul>
          ${!open && things.length > 6 ? html`<button class="link sm" onClick=${() => setOpen(true)}>All ${count(found.total)} that are gone</button>` : open && things.length < found.total ? html`<button class="link sm" onClick=${next}>${count(Math.min(PAGE, found.total - things.length))} more</button>` : null}
          ${things.some((one) => one.named) ? html`<p class="dim xs">≈ the summary has most of its words</p>` : null}</section>`
      : null}
    ${found.summary ? html`<section><details class="fold-summary"><summary class="link sm">The summary</summary><p class="plain sm">${shown(found.summary)}${found.summary_cut ? ` … ${count(found.summary_cut)} more characters` : ""}</p></details></section>` : html`<section><p class="dim sm">The runtime keeps the summary sealed.</p></section>`}
    ${found.before_commit
      ? html`<section><div class="row"><button class="button primary" onClick=${() => setContinuing(true)}>Continue with all of it</button></div><p class="dim sm fold-note">Nothing is lost: <span class="id">${found.before_commit}</span> still holds it as it was.</p></section>${continuing ? html`<${Continue} at=${found.before_commit} close=${() => setContinuing(false)} />` : null}`
      : null}`;
}

const Thing = ({ thing, to, sign }) =>
  html`<li><span class=${"sign " + (sign === "≈" ? "dim" : "alert")} role="img" aria-label=${sign === "≈" ? "named" : "gone"}>${sign}</span>${to ? html`<a class="cut2 grow" href=${to}>${shown(thing.text)}</a>` : html`<span class="cut2 grow">${shown(thing.text)}</span>`}<span class="id">${thing.tool ? shown(thing.tool) : ONE[thing.kind] || thing.kind}</span></li>`;

/** How much went in and how much came out, as a shape. */
function Funnel({ before, after }) {
  if (!before || after == null) return null;
  const left = 68;
  const right = Math.max(3, Math.min(left, (after / before) * left));
  const [top, bottom] = [(left - right) / 2, (left + right) / 2];
  return html`<svg class="funnel" viewBox="0 0 340 68" preserveAspectRatio="none" role="img" aria-label=${`From ${few(before)} to ${few(after)} tokens`}><path class="body" d=${`M0 0C170 0 170 ${top} 340 ${top}V${bottom}C170 ${bottom} 170 68 0 68z`} /><rect x="0" y="0" width="4" height="68" /><rect x="336" y=${top} width="4" height=${right} /></svg>`;
}
