// Cost by project, model and program, and the tools that were called.
import { useState } from "preact/hooks";
import { withParams } from "../address.js";
import { html } from "../html.js";
import { count, duration, few, money, plural, shown } from "../words.js";
import { firstOfName, nameOfPart } from "./stats_days.js";

const FEW = 5;
const TOOLS = 10;

const tokensOf = (one) => (one.usage.input || 0) + (one.usage.output || 0) + (one.usage.cache_write || 0);

const Bar = ({ part }) => html`<span class="share" aria-hidden="true"><i style=${{ width: `${Math.max(1.5, 100 * part)}%` }}></i></span>`;

export function Shares({ told }) {
  const priced = told.total.price_usd_micros !== null;
  const value = priced ? (one) => one.price_usd_micros || 0 : tokensOf;
  const write = priced ? money : few;
  return html`<section class="card cost-shares" aria-labelledby="shares">
    <header><h2 id="shares">${priced ? "Cost" : "Tokens"}</h2><span class="dim">by project, model and program</span></header>
    ${[["project", "Project"], ["model", "Model"], ["runtime", "Program"]].map(([side, words]) => html`<${Share} side=${side} words=${words} rows=${told[side] || []} value=${value} write=${write} />`)}
  </section>`;
}

/** The rows whose keys have one name as one: its keys, and its sums. */
function named(side, rows) {
  const firsts = firstOfName(side, rows.map((one) => one.key));
  const found = new Map();
  for (const one of rows) {
    const first = firsts.get(one.key);
    const held = found.get(first);
    found.set(first, held ? { ...held, keys: [...held.keys, one.key], requests: held.requests + one.requests, usage: sumOf(held.usage, one.usage), price_usd_micros: plus(held.price_usd_micros, one.price_usd_micros) } : { ...one, keys: [one.key] });
  }
  return [...found.values()];
}

const plus = (a, b) => (a === null ? b : b === null ? a : a + b);
const sumOf = (a, b) => Object.fromEntries(Object.keys(a).map((kind) => [kind, plus(a[kind], b[kind])]));

function Share({ side, words, rows: given, value, write }) {
  const [all, setAll] = useState(false);
  const rows = named(side, given);
  const sum = rows.reduce((whole, one) => whole + value(one), 0) || 1;
  const most = Math.max(1, ...rows.map(value));
  const filled = rows.filter((one) => value(one) || one.requests).sort((a, b) => value(b) - value(a));
  if (!filled.length || (side === "runtime" && filled.length < 2)) return null;
  const first = all || filled.length <= FEW + 1 ? filled : filled.slice(0, FEW);
  const left = filled.slice(first.length);
  const others = left.reduce((whole, one) => whole + value(one), 0);
  const keys = filled.map((one) => one.key);
  const to = ({ key, keys: every }) => (side === "project" ? withParams({ project: key }) : side === "model" ? search(every.map((one) => "model:" + one).join(" ")) : "/sessions?runtime=" + encodeURIComponent(key));
  return html`<table class="figures"><thead><tr><th scope="col">${words}</th><td></td><th scope="col" class="number">${write === money ? "Cost" : "Tokens"}</th><th scope="col" class="number">Share</th></tr></thead>
    <tbody>${first.map((one) => html`<tr><th scope="row" class="cut" title=${shown(one.keys.join(", "))}>${one.key ? html`<a href=${to(one)}>${nameOfPart(side, one.key, keys)}</a>` : html`<span class="dim">unknown</span>`}</th><td><${Bar} part=${value(one) / most} /></td><td class="number">${one.price_usd_micros === null && write === money ? html`<span class="dim">no price</span>` : write(value(one))}</td><td class="number dim">${Math.round((100 * value(one)) / sum)} %</td></tr>`)}
    ${left.length ? html`<tr><th scope="row"><button class="link" onClick=${() => setAll(true)}>${left.length} more</button></th><td><${Bar} part=${Math.min(1, others / most)} /></td><td class="number">${write(others)}</td><td class="number dim">${Math.round((100 * others) / sum)} %</td></tr>` : null}</tbody></table>`;
}

const search = (words) => "/search?q=" + encodeURIComponent(words);
const asFilter = (tool) => (/[\s"]/.test(tool) ? `tool:"${tool.replaceAll('"', "")}"` : `tool:${tool}`);

export function Tools({ told }) {
  const [all, setAll] = useState(false);
  const tools = told.tool || [];
  if (!tools.length) return null;
  const most = Math.max(1, ...tools.map((one) => one.calls));
  const { calls, failed } = told.total;
  return html`<section class="card tools" aria-labelledby="tools">
    <header><h2 id="tools">Tools</h2><span class="dim">${plural(calls, "call")}, ${failed ? `${count(failed)} failed` : "none failed"}</span></header>
    <table class="figures"><thead><tr><th scope="col">Tool</th><td></td><th scope="col" class="number">Calls</th><th scope="col" class="number">Failed</th><th scope="col" class="number">Each</th><th scope="col" class="number">Together</th></tr></thead>
      <tbody>${(all ? tools : tools.slice(0, TOOLS)).map((one) => {
        const part = one.calls ? one.failed / one.calls : 0;
        return html`<tr><th scope="row" class="cut mono" title=${shown(one.key)}><a href=${search(asFilter(one.key))}>${shown(one.key) || "unnamed"}</a></th><td><${Bar} part=${one.calls / most} /></td><td class="number">${count(one.calls)}</td><td class="number">${one.failed ? html`<a class=${part >= 0.05 ? "alert" : ""} href=${"/sessions?has=errors&q=" + encodeURIComponent(asFilter(one.key))}>${count(one.failed)}${part >= 0.01 ? ` · ${Math.round(100 * part)} %` : ""}</a>` : html`<span class="dim">–</span>`}</td><td class="number dim">${one.took_seconds ? short(one.took_seconds / one.calls) : "–"}</td><td class="number dim">${one.took_seconds ? short(one.took_seconds) : "–"}</td></tr>`;
      })}</tbody></table>
    ${tools.length > TOOLS ? html`<button class="link sm" onClick=${() => setAll(!all)}>${all ? "fewer" : `${tools.length - TOOLS} more tools`}</button>` : null}
  </section>`;
}

/** 40 ms, 1.2 s, 3 min: an average has no use for the last digits. */
const short = (seconds) => (seconds < 1 ? `${Math.round(seconds * 1000)} ms` : seconds < 60 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : duration(seconds).replace(/ \d+ s$/, ""));
