// A row of the flow: somebody's words in the column of whoever said them, and a wire to each who heard them.
import { html, names } from "../html.js";
import { Icon } from "../marks.js";
import { brief, clock, few, plural, shown } from "../words.js";
import { colourClass, speakerOf } from "./flow_people.js";

const RANK = { changed: 0, blocked: 1, verbatim: 2, named: 3, result: 4 };
export const HOW = { verbatim: "word for word", named: "with the name before it", result: "in a tool result", changed: "changed by a hook", blocked: "blocked" };

/** Each hearer once: what a hook did counts before everything else, then what came first. */
export function hearersOf(row) {
  const found = new Map();
  for (const one of row.hearers) {
    if (one.agent === row.speaker) continue;
    const before = found.get(one.agent);
    if (!before || (one.how === "changed" && before.how !== "changed") || (before.how === "blocked" && one.how !== "blocked")) found.set(one.agent, one);
  }
  return [...found.values()].sort((a, b) => RANK[a.how] - RANK[b.how]);
}

export function FlowRow({ row, flow, selected, boundary }) {
  const { people, layout, columns, agent } = flow;
  const speaker = speakerOf(row, people);
  const hearers = hearersOf(row);
  const knew = row.known?.knew || "";
  const isLater = flow.moment ? row.micros > flow.moment : knew === "after";
  const unheard = Boolean(agent) && (knew === "never" || knew === "later");
  const place = row.kind === "injected" ? undefined : layout.places.get(row.speaker);
  const state = names("flow-row", "kind-" + row.kind, { selected, later: isLater, unheard, narrow: layout.narrow });
  return html`<div class=${state} onClick=${(event) => event.target.closest("a,button") || flow.select(row)}>
    ${boundary ? html`<div class="flow-boundary"><b>${clock(flow.at, true)}</b><span>what ${shown(flow.people.get(agent)?.name || "everybody")} ${agent ? "knew" : "said"} ends here</span></div>` : null}
    ${agent !== null && layout.places.has(agent) && !isLater ? html`<i class=${"flow-tint " + colourClass(people.get(agent))} style=${box(layout.places.get(agent))}></i>` : null}
    ${columns.map((column) => html`<${Life} key=${column.agent} column=${column} row=${row} flow=${flow} />`)}
    ${layout.narrow ? null : html`<time class="flow-time" datetime=${row.time}>${clock(row.time, true)}</time>`}
    <div class="flow-line" style=${layout.narrow ? { paddingLeft: `${layout.gutter}px` } : null}>
      ${row.kind === "made" ? html`<${Made} row=${row} flow=${flow} place=${place} speaker=${speaker} />` : html`<${Wires} row=${row} flow=${flow} place=${place} hearers=${hearers} />`}
      ${row.kind === "made" ? null : html`<${Card} row=${row} flow=${flow} place=${place} speaker=${speaker} hearers=${hearers} />`}
    </div>
  </div>`;
}

const box = (place) => ({ left: `${place.left}px`, width: `${place.width}px` });

/** The line of an agent's life: it begins where the agent first takes part. */
function Life({ column, row, flow }) {
  if (column.begins < 0 || row.n < column.begins) return null;
  const { x } = flow.layout.places.get(column.agent);
  return html`<i class=${names("flow-life", colourClass(flow.people.get(column.agent)), { begins: row.n === column.begins })} style=${{ left: `${x}px` }}></i>`;
}

const ROOMY = 250; // pixels that words would like to have
const ENOUGH = 160; // pixels of a column that need no more
const BESIDE = 40; // pixels that a wire and an ear take

/** Where a card stands: in its column; wider, where it covers nobody who hears it. */
function cardBox(layout, place, hearers) {
  const own = { left: place.x - place.card / 2, width: place.card };
  if (own.width >= ENOUGH) return own;
  const seen = hearers.map((one) => layout.places.get(one.agent)?.x).filter((x) => x !== undefined);
  const after = Math.min(layout.width - 8, ...seen.filter((x) => x > place.x).map((x) => x - BESIDE));
  const before = Math.max(layout.gutter, ...seen.filter((x) => x < place.x).map((x) => x + BESIDE));
  const right = Math.max(own.left + own.width, Math.min(after, own.left + ROOMY));
  const left = Math.min(own.left, Math.max(before, right - ROOMY));
  return { left, width: right - left };
}

/** Wires from the card to the left and to the right, stop by stop; each piece looks like the stop it ends at. */
function Wires({ row, flow, place, hearers }) {
  const { places, narrow } = flow.layout;
  const seen = hearers.filter((one) => places.has(one.agent));
  if (!place && !seen.length) return null;
  const from = place ? place.x : flow.layout.gutter;
  const card = narrow || !place ? null : cardBox(flow.layout, place, hearers);
  const pieces = [];
  for (const side of [-1, 1]) {
    let at = card ? (side < 0 ? card.left + 6 : card.left + card.width - 6) : from;
    for (const one of seen.filter((each) => Math.sign(places.get(each.agent).x - from) === side).sort((a, b) => side * (places.get(a.agent).x - places.get(b.agent).x))) {
      const to = places.get(one.agent).x;
      pieces.push(html`<i class=${`wire how-${one.how} ${colourClass(flow.people.get(row.speaker))}`} style=${{ left: `${Math.min(at, to)}px`, width: `${Math.abs(to - at)}px` }}></i>`);
      at = to;
    }
  }
  return html`<div class="flow-wires" aria-hidden="true">${pieces}${seen.map((one) => html`<${Ear} one=${one} x=${places.get(one.agent).x} flow=${flow} />`)}${narrow && place ? html`<i class=${"mouth " + colourClass(flow.people.get(row.speaker))} style=${{ left: `${place.x}px` }}></i>` : null}</div>`;
}

function Ear({ one, x, flow }) {
  const colour = colourClass(flow.people.get(one.agent));
  if (!flow.layout.narrow && one.how === "changed") return html`<span class="ear how-changed" style=${{ left: `${x}px` }}>≠ ${one.words ? plural(one.words, "word") : "changed"}</span>`;
  if (!flow.layout.narrow && one.how === "blocked") return html`<span class="ear how-blocked" style=${{ left: `${x}px` }}>✕ blocked</span>`;
  return html`<i class=${`ear how-${one.how} ${colour}`} style=${{ left: `${x}px` }}></i>`;
}

function Made({ row, flow, place, speaker }) {
  const { places, narrow } = flow.layout;
  const who = row.made.map((id) => flow.people.get(id)?.name || id);
  const text = who.length > 3 || (who.length > 1 && who.join("").length > 48) ? `made ${plural(who.length, "agent")}` : "made " + who.map((name) => brief(name, 40)).join(who.length === 2 ? " and " : ", ");
  const dots = row.made.filter((id) => places.has(id)).map((id) => html`<i class=${"birth " + colourClass(flow.people.get(id))} style=${{ left: `${places.get(id).x}px` }}></i>`);
  return html`<div class="flow-wires" aria-hidden="true">${dots}</div><p class="flow-made" style=${narrow || !place ? null : { marginLeft: `${place.left}px`, width: `${place.width}px` }}><span><span class=${narrow ? "" : "screen-reader"}>${shown(speaker.name)} </span>${text}</span></p>`;
}

const ICONS = { call: "command", result: "right", thinking: "thought", other: "page" };

function Card({ row, flow, place, speaker, hearers }) {
  const { narrow, places, gutter } = flow.layout;
  const hidden = hearers.filter((one) => !places.has(one.agent));
  const own = place && !narrow ? cardBox(flow.layout, place, hearers) : null;
  const style = narrow ? null : own ? { marginLeft: `${own.left}px`, width: `${own.width}px` } : { marginLeft: `${gutter}px`, width: "220px" };
  const told = hearers.length ? ` to ${hearers.map((one) => `${shown(flow.people.get(one.agent)?.name || one.agent)} (${HOW[one.how]})`).join(", ")}` : "";
  return html`<div class=${names("flow-card", colourClass(speaker), { quiet: row.kind !== "spoken", failed: row.failed })} style=${style}>
    ${narrow
      ? html`<p class="flow-who"><b>${shown(speaker.you ? "You" : speaker.name)}</b>${hearers.length ? html` → ${hearers.slice(0, 4).map((one, n) => html`${n ? ", " : ""}${shown(flow.people.get(one.agent)?.name || one.agent)}${one.how === "changed" ? html` <b class="alert">≠</b>` : one.how === "blocked" ? html` <b class="alert">✕</b>` : null}`)}${hearers.length > 4 ? ` +${hearers.length - 4}` : ""}` : null}</p>`
      : html`<span class="screen-reader">${shown(speaker.name)}${told}: </span>${place ? null : html`<p class="flow-who cut"><b>${shown(speaker.name)}</b></p>`}`}
    <p class="flow-text">${row.kind === "spoken" ? null : html`<${Icon} name=${ICONS[row.kind] || "other"} label=${row.kind} /> `}${row.failed ? html`<span class="alert">✕ </span>` : null}<${Said} text=${row.text} played=${row.kind === "spoken"} /></p>
    ${hidden.length && !narrow ? html`<p class="flow-more">and to ${hidden.length === 1 ? brief(flow.people.get(hidden[0].agent)?.name || hidden[0].agent, 30) : plural(hidden.length, "other")}</p>` : null}
  </div>`;
}

const LONGEST = 420; // characters in a card; the panel has all of them

/** Words as they were said; what stands between stars is played, not spoken. */
function Said({ text, played }) {
  const cut = text.length > LONGEST ? text.slice(0, LONGEST) + " …" : text;
  if (!played) return shown(cut);
  return cut.split(/(?<![*\w/])\*([^*\n]{1,120})\*(?![*\w/])/).map((part, n) => (n % 2 ? html`<em>${shown(part)}</em>` : shown(part)));
}

/** The names above the columns. A click asks what that agent knew. */
export function FlowHead({ flow, chooser, remove }) {
  const { columns, layout, people, agent } = flow;
  if (layout.narrow) {
    return html`<div class="flow-head narrow"><div class="flow-marks" style=${{ width: `${layout.gutter}px` }} aria-hidden="true">${columns.map((column) => html`<i class=${"flow-dot " + colourClass(people.get(column.agent))} style=${{ left: `${layout.places.get(column.agent).x}px` }}></i>`)}</div><span class="cut dim sm">${columns.map((column) => shown(people.get(column.agent).name)).join(", ")}</span>${chooser}</div>`;
  }
  return html`<div class="flow-head">
    <div class="flow-add">${chooser}</div>
    ${columns.map((column) => {
      const who = people.get(column.agent);
      const chosen = agent === column.agent;
      const knows = flow.known && chosen ? flow.known.knew : column.knows;
      return html`<div class=${names("flow-name", colourClass(who), { chosen })} style=${box(layout.places.get(column.agent))}>
        <button aria-pressed=${chosen ? "true" : "false"} disabled=${who.you} title=${who.you ? "Whoever is outside the session" : `What did ${shown(who.name)} know?`} onClick=${() => flow.choose(chosen ? null : column.agent)}>
          <span class="flow-name-top"><span class=${"agent-mark big " + colourClass(who)} aria-hidden="true">${letter(who)}</span><b class="cut">${shown(who.name)}</b></span>
          <span class="dim xs cut">${who.you ? "outside" : `${flow.modelOf(column)}${chosen && flow.at ? "knew" : "knows"} ${few(knows)}`}</span>
        </button>
        ${columns.length > 2 && !who.you ? html`<button class="icon-button flow-remove" aria-label=${`Remove the column of ${shown(who.name)}`} onClick=${() => remove(column.agent)}><${Icon} name="close" /></button>` : null}
      </div>`;
    })}
  </div>`;
}

function letter(who) {
  if (who.you) return "Y";
  const words = who.name.replace(/[^\p{L}\p{N} _-]/gu, "").split(/[ _-]+/).filter(Boolean);
  return words.length > 1 ? words[0][0] + words[1][0] : [...(words[0] || "?")].slice(0, 2).join("");
}
