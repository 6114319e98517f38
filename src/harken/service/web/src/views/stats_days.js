// What was used by day, week or month, as stacked bars with a table behind them.
import { address, setParams } from "../address.js";
import { html } from "../html.js";
import { useAnswer } from "../states.js";
import { date, few, fullDate, modelName, money, runtimeName, shortMonth, shown } from "../words.js";
import { roundMoney } from "./home.js";
import { nameAmong, useWide } from "./pieces.js";
import { sortOut } from "./stats.js";
import { DAY, dateOf, dayAfter, daysBetween } from "./windows.js";

const PARTS = 3;
const SIDES = [["project", "Project"], ["model", "Model"], ["runtime", "Program"]];
const LONG = { day: 95, week: 95 * 7 };

const noon = (day) => new Date(`${day}T12:00:00`);

/** 2026-W05, as ISO counts weeks. */
function weekOf(date) {
  const day = new Date(Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()));
  day.setUTCDate(day.getUTCDate() + 4 - (day.getUTCDay() || 7));
  const first = Date.UTC(day.getUTCFullYear(), 0, 1);
  return `${day.getUTCFullYear()}-W${String(Math.ceil(((day - first) / DAY + 1) / 7)).padStart(2, "0")}`;
}

const periodOf = (day, by) => (by === "week" ? weekOf(noon(day)) : by === "month" ? day.slice(0, 7) : day);

/** The periods from the first day to the last, each with its first day and the first behind it. */
function periodsOf(first, last, by) {
  const found = new Map();
  for (const day of daysBetween(first, last, 4000)) {
    const key = periodOf(day, by);
    if (found.has(key)) found.get(key).until = dayAfter(day);
    else found.set(key, { key, since: day, until: dayAfter(day) });
  }
  return [...found.values()];
}

export const nameOfPart = (side, key, all = []) => (!key ? "unknown" : shown(side === "model" ? modelName(key) : side === "runtime" ? runtimeName(key) : nameAmong(key, all)));

/** Programs spell one model in several ways: by key, the first of the keys with the same name. */
export function firstOfName(side, keys) {
  const firsts = new Map();
  return new Map(keys.map((key) => {
    const name = side === "model" ? modelName(key) : key;
    if (!firsts.has(name)) firsts.set(name, key);
    return [key, firsts.get(name)];
  }));
}

const tokensOf = (one) => (one.usage.input || 0) + (one.usage.output || 0) + (one.usage.cache_write || 0);

/** 1, 2 or 5 times a power of ten, of which a few make the whole. */
function stepOf(most) {
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough) || power;
}

function stacked(answers, side, value) {
  const sums = new Map();
  const firsts = firstOfName(side, answers.map((one) => one.per));
  for (const one of answers) sums.set(firsts.get(one.per), (sums.get(firsts.get(one.per)) || 0) + value(one));
  const parts = [...sums].filter(([, sum]) => sum).sort((a, b) => b[1] - a[1]).slice(0, PARTS).map(([key]) => key);
  const periods = new Map();
  for (const one of answers) {
    const held = periods.get(one.key) || { sum: 0, parts: parts.map(() => 0), other: 0 };
    const at = parts.indexOf(firsts.get(one.per));
    held.sum += value(one);
    if (at < 0) held.other += value(one);
    else held.parts[at] += value(one);
    periods.set(one.key, held);
  }
  return { parts, periods, rest: sums.size > parts.length };
}

export function CostByDay({ window, project, told }) {
  const { params } = address.value;
  const priced = told.total.price_usd_micros !== null;
  const of = params.get("of") === "tokens" || !priced ? "tokens" : "cost";
  const side = SIDES.some(([name]) => name === params.get("split")) ? params.get("split") : "project";
  const days = (told.day || []).map((one) => one.key).filter(Boolean);
  const first = window.since ? dateOf(window.since) : days[0];
  const last = window.until ? dateOf(Date.parse(window.until) - 1) : window.since ? dateOf(Date.now()) : days.at(-1);
  const length = first ? (noon(last) - noon(first)) / DAY + 1 : 0;
  const by = length > LONG.week ? "month" : length > LONG.day ? "week" : "day";
  const [found] = useAnswer("usage", { ...window, project, by: [by], split: side }, { many: sortOut, skip: !first });
  const value = of === "cost" ? (one) => one.price_usd_micros || 0 : tokensOf;
  const write = of === "cost" ? money : few;
  const short = of === "cost" ? roundMoney : few;
  const answers = (found?.[by] || []).filter((one) => one.per !== undefined);
  const { parts, periods, rest } = stacked(answers, side, value);
  const bars = first ? periodsOf(first, last, by) : [];
  const most = Math.max(1, ...bars.map((one) => periods.get(one.key)?.sum || 0));
  const step = stepOf(most);
  const top = Math.ceil(most / step) * step;
  const sum = of === "cost" ? money(told.total.price_usd_micros) : few(tokensOf(told.total)) + " without what came from the cache";
  const choose = (name, key, words) => html`<button aria-pressed=${key ? "true" : "false"} onClick=${() => setParams(name, { replace: true })}>${words}</button>`;
  return html`<section class="card by-day" aria-labelledby="by-day">
    <header><h2 id="by-day">${of === "cost" ? "Cost" : "Tokens"} by ${by}</h2><span class="dim">${sum}</span><span class="grow"></span>
      <span class="keys dim xs">${parts.map((key, n) => html`<span class="key"><i class=${"heat" + (4 - n)}></i>${nameOfPart(side, key, parts)}</span>`)}${rest ? html`<span class="key"><i class="heat-other"></i>other</span>` : null}</span>
      ${priced ? html`<div class="segments" role="group" aria-label="What">${choose({ of: null }, of === "cost", "Cost")}${choose({ of: "tokens" }, of === "tokens", "Tokens")}</div>` : null}
      <div class="segments" role="group" aria-label="Told apart by">${SIDES.map(([name, words]) => choose({ split: name === "project" ? null : name }, name === side, words))}</div>
    </header>
    <div class="bars" aria-hidden="true">
      ${Array.from({ length: Math.round(top / step) + 1 }, (_, n) => html`<div class="bars-line" style=${{ bottom: `${((n * step) / top) * 100}%` }}><span>${n ? short(n * step) : "0"}</span></div>`)}
      <div class="bars-room">${bars.map((one) => {
        const held = periods.get(one.key);
        const to = by === "day" ? "/?day=" + one.since : `/sessions?since=${one.since}&until=${one.until}`;
        const words = `${labelOf(one, by)}: ${held ? write(held.sum) : "nothing"}${held ? held.parts.map((price, n) => (price ? `\n${nameOfPart(side, parts[n], parts)} ${write(price)}` : "")).join("") : ""}`;
        return html`<a class="bar" href=${to} tabindex="-1" title=${words}>${held?.sum === most && most > 1 ? html`<b style=${{ bottom: `${(held.sum / top) * 100}%` }}>${short(held.sum)}</b>` : null}${held ? html`<span style=${{ height: `${(held.sum / top) * 100}%` }}>${held.other ? html`<i class="heat-other" style=${{ flex: held.other }}></i>` : null}${held.parts.map((price, n) => [price, n]).reverse().map(([price, n]) => (price ? html`<i class=${"heat" + (4 - n)} style=${{ flex: price }}></i>` : null))}</span>` : null}</a>`;
      })}</div>
    </div>
    <${Axis} bars=${bars} by=${by} />
    <${BehindBars} bars=${bars} by=${by} periods=${periods} parts=${parts} side=${side} write=${write} of=${of} />
  </section>`;
}

function labelOf(one, by) {
  const begun = noon(one.since);
  if (by === "month") return `${shortMonth(begun)} ${begun.getFullYear()}`;
  return (by === "week" ? "week of " : "") + fullDate(begun);
}

/** Names under some bars: Mondays of a month of days, the first week of a month, every month while there is room. */
function Axis({ bars, by }) {
  const wide = useWide(620);
  const every = Math.max(1, Math.ceil(bars.length / (wide ? 10 : 4)));
  const isNamed = (one, n) => (by === "day" && wide && bars.length > 14 && bars.length <= 45 ? noon(one.since).getDay() === 1 : n % every === 0);
  const nameOf = (begun) => (by !== "month" ? date(begun) : bars.length > 12 ? `${shortMonth(begun)} ${String(begun.getFullYear()).slice(-2)}` : shortMonth(begun));
  return html`<div class="bars-axis" aria-hidden="true">${bars.map((one, n) => (isNamed(one, n) ? html`<span style=${{ left: `${((n + 0.5) / bars.length) * 100}%` }}>${nameOf(noon(one.since))}</span>` : null))}</div>`;
}

function BehindBars({ bars, by, periods, parts, side, write, of }) {
  const filled = bars.filter((one) => periods.get(one.key)?.sum);
  return html`<details class="behind"><summary class="dim xs">as a table</summary><div class="scroll-x behind-room" tabindex="0" role="group" aria-label="The same as a table"><table class="figures">
    <caption class="screen-reader">${of === "cost" ? "Cost" : "Tokens"} by ${by}</caption>
    <thead><tr><th scope="col">${by}</th>${parts.map((key) => html`<th scope="col" class="number">${nameOfPart(side, key, parts)}</th>`)}<th scope="col" class="number">other</th><th scope="col" class="number">all</th></tr></thead>
    <tbody>${filled.map((one) => {
      const held = periods.get(one.key);
      return html`<tr><th scope="row"><a class="link" href=${by === "day" ? "/?day=" + one.since : `/sessions?since=${one.since}&until=${one.until}`}>${labelOf(one, by)}</a></th>${held.parts.map((price) => html`<td class="number">${price ? write(price) : ""}</td>`)}<td class="number">${held.other ? write(held.other) : ""}</td><td class="number">${write(held.sum)}</td></tr>`;
    })}</tbody>
  </table></div></details>`;
}

// -- as a file ---

/** A cell of a CSV; what a spreadsheet would take for a formula is text. */
const cell = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

export function saveTable(told) {
  const heads = ["by", "key", "sessions", "requests", "input", "output", "cache_read", "cache_write", "price_usd", "calls", "failed", "took_seconds"];
  const lines = [heads.join(",")];
  for (const side of ["day", "project", "model", "runtime", "tool"]) {
    for (const one of told[side] || []) {
      const { input, output, cache_read: read, cache_write: written } = one.usage;
      lines.push([side, one.key, one.sessions, one.requests, input, output, read, written, one.price_usd_micros === null ? "" : one.price_usd_micros / 1e6, one.calls, one.failed, one.took_seconds].map(cell).join(","));
    }
  }
  const url = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "harken-usage.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
