// Home: a day in one sentence, what goes on, what is worth a look, the week, and the day as it ran.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, go, sessionAddress } from "../address.js";
import { html, names } from "../html.js";
import { useKeys } from "../keys.js";
import { Icon, RuntimeMark } from "../marks.js";
import { Loading, Problem, useAnswer } from "../states.js";
import { ago, count, clock, day as dayWords, duration, grouped, longDate, money, plural, shortWeekday, shown } from "../words.js";
import { DayBars } from "./day_bars.js";
import { EmptyStore } from "./empty.js";
import { ContinueButton, OwnStrip, nameAmong, priceOf, useChanges, useTicks } from "./pieces.js";
import { dateOf, dayAfter } from "./windows.js";

/** Of what is no day there is none: the server says what is wrong with it. */
const zoneOf = (day) => -new Date(day ? `${day}T12:00:00` : Date.now()).getTimezoneOffset() || 0;

export function Home() {
  const asked = address.value.params.get("day") || "";
  const [today, problem, again] = useAnswer("home", { day: asked, zone: zoneOf(asked) }, { key: asked });
  // Where nothing ran today, the last day on which something did says more than a row of zeros.
  const other = !asked && today && !today.facts.sessions && !today.running.length ? today.nearest : "";
  const [earlier, , againEarlier] = useAnswer("home", { day: other, zone: zoneOf(other) }, { key: other, skip: !other });
  useChanges(() => (again(), other && againEarlier()), 3000);
  useTicks();
  if (problem && !today) return html`<main id="main" class="page"><${Problem} problem=${problem} again=${again} /></main>`;
  if (!today || (other && !earlier)) return html`<main id="main" class="page"><${Loading} what="today" /></main>`;
  if (!today.total) return html`<main id="main" class="page"><h1 class="screen-reader">Home</h1><${EmptyStore} /></main>`;
  const told = earlier && other ? earlier : today;
  return html`<main id="main" class="page home">
    <div class="home-words">
      <${DayHead} told=${told} empty=${Boolean(other)} />
      <${Sentence} told=${told} />
      <${SearchBox} />
    </div>
    <${GoOn} told=${today} />
    <aside class="home-side" aria-label="This week">
      <${Worth} told=${told} />
      <${Week} told=${told} />
    </aside>
    <${DayBars} told=${told} isToday=${told.day === dateOf(Date.now())} />
  </main>`;
}

const longDay = (day) => longDate(new Date(`${day}T12:00:00`));

function dayBefore(day) {
  const date = new Date(`${day}T12:00:00`);
  date.setDate(date.getDate() - 1);
  return dateOf(date);
}

function DayHead({ told, empty }) {
  const today = dateOf(Date.now());
  const next = dayAfter(told.day);
  return html`<div class="day-head">
    <h1>${longDay(told.day)}</h1>
    <a class="icon-button turn" href=${"/?day=" + dayBefore(told.day)} aria-label="The day before"><${Icon} name="right" /></a>
    ${told.day < today ? html`<a class="icon-button" href=${next >= today ? "/" : "/?day=" + next} aria-label="The day after"><${Icon} name="right" /></a>` : null}
    ${empty ? html`<span class="dim">Nothing ran today. This is the last day on which something did.</span>` : told.day !== today ? html`<a class="link sm" href="/">today</a>` : null}
  </div>`;
}

// -- the sentence ---

function Sentence({ told }) {
  const f = told.facts;
  const window = `since=${told.day}&until=${dayAfter(told.day)}`;
  if (!f.sessions && told.behind) return html`<p class="sentence">Nothing of this day is in the index yet.</p>`;
  if (!f.sessions) {
    return html`<p class="sentence">Nothing ran on this day.${told.nearest ? html` The nearest on which something did is <a href=${"/?day=" + told.nearest}>${longDay(told.nearest)}</a>.` : null}</p>`;
  }
  const link = (to, words, alert) => html`<a href=${to} class=${alert ? "alert" : null}>${words}</a>`;
  const ends = [];
  if (f.compactions) ends.push([link(`/sessions?${window}&has=compaction`, plural(f.compactions, "compaction")), f.folded ? ` folded ${plural(f.folded, "message")} away` : " happened"]);
  if (f.failed) ends.push([link(`/sessions?${window}&has=errors`, `${plural(f.failed, "call")} failed`, true), ` of ${count(f.calls)}`]);
  else if (f.calls) ends.push([`none of ${plural(f.calls, "call")} failed`]);
  const change = told.worth.find((one) => one.kind === "changed" || one.kind === "blocked");
  if (f.changed) ends.push([link(change ? lookAddress(change) : `/sessions?${window}`, `${plural(f.changed, "message")} ${f.changed === 1 ? "was" : "were"} changed on the way`, true)]);
  return html`<p class="sentence">
    ${link(`/sessions?${window}`, plural(f.sessions, "session"))} ran${f.seconds ? html` for ${link(`/stats?${window}`, duration(f.seconds))}` : ""}${f.price_usd_micros !== null ? html` and cost ${f.unpriced.length ? "at least " : ""}${link(`/stats?${window}`, money(f.price_usd_micros))}` : null}.
    ${f.files ? html` ${f.sessions === 1 ? "It" : "They"} changed ${link(`/sessions?${window}`, plural(f.files, "file"))}${f.projects > 1 ? ` in ${f.projects} projects` : ""}.` : null}
    ${ends.map((part, n) => html`${n === 0 ? " " : n === ends.length - 1 ? (ends.length > 2 ? ", and " : " and ") : ", "}${capital(part, n)}`)}${ends.length ? "." : ""}
  </p>`;
}

const capital = (part, n) => (n === 0 && typeof part[0] === "string" ? [part[0][0].toUpperCase() + part[0].slice(1), ...part.slice(1)] : part);

function SearchBox() {
  const [words, setWords] = useState("");
  const field = useRef(null);
  useKeys({ filter: () => void field.current?.focus() });
  return html`<form class="field home-search" role="search" onSubmit=${(event) => (event.preventDefault(), words.trim() && go("/search?q=" + encodeURIComponent(words.trim())))}>
    <${Icon} name="search" /><input type="text" ref=${field} aria-label="Search everything" placeholder="What did you or an agent say, run, read or change?" value=${words} onInput=${(event) => setWords(event.target.value)} /><kbd>/</kbd>
  </form>`;
}

// -- what goes on ---

const STATES = { running: ["Running", "accent"], asks: ["Asks you", "strong"], failed: ["✕ Stopped on a failure", "alert"], done: ["Done", "strong"] };

function GoOn({ told }) {
  const rows = [...told.running.slice(0, 6), ...told.recent].slice(0, 8);
  const [chosen, choose] = useState(""); // by its name: news may move it
  const at = rows.findIndex((row) => row.session === chosen);
  const move = (by) => {
    const next = Math.max(0, Math.min(rows.length - 1, at + by));
    choose(rows[next].session);
    document.getElementById("go-on-" + next)?.querySelector("a")?.focus();
  };
  useKeys({
    next: () => (rows.length ? move(1) : false),
    previous: () => (rows.length ? move(-1) : false),
    first: () => (rows.length ? move(-rows.length) : false),
    last: () => (rows.length ? move(rows.length) : false),
    open: () => (rows[at] ? void go(sessionAddress(rows[at].session)) : false),
  });
  if (!rows.length) return null;
  const asks = told.recent.filter((one) => one.state === "asks").length;
  const facts = [told.running.length ? `${told.running.length} running` : "", asks ? `${asks} ${asks === 1 ? "waits" : "wait"} for you` : ""].filter(Boolean).join(", ");
  return html`<section class="go-on" aria-labelledby="go-on">
    <div class="home-head"><h2 id="go-on">Continue</h2><span class="dim">${facts}</span><span class="grow"></span><a class="link sm" href="/sessions">all ${plural(told.total, "session")}</a></div>
    <ul>${rows.map((row, n) => html`<${GoOnRow} key=${row.session} row=${row} n=${n} chosen=${n === at} />`)}</ul>
  </section>`;
}

function GoOnRow({ row, n, chosen }) {
  const [word, tone] = STATES[row.state] || STATES.done;
  const to = sessionAddress(row.session);
  const last = row.state === "running" ? [row.agents ? plural(row.agents, "agent") : "", row.last].filter(Boolean).join(" · ") : row.last;
  return html`<li id=${"go-on-" + n} class=${names("go-on-row", { chosen })}>
    <div class="go-on-words"><a class="go-on-title cut" href=${to} title=${shown(row.title)}>${shown(row.title || row.short)}</a>
      <a class="go-on-state cut" href=${sessionAddress(row.session, { record: row.record })}><span class=${tone}>${row.state === "running" ? html`<i class="pulse"></i> ` : null}${word}</span> <span class="dim">· ${ago(row.active)}${priceOf(row) ? ` · ${priceOf(row)}` : ""}${last ? html` · ${shown(last)}` : null}</span></a></div>
    <div class="go-on-strip"><${OwnStrip} letters=${row.strip} most=${34} /></div>
    <div class="go-on-runtime"><${RuntimeMark} runtime=${row.runtime} /></div>
    <div class="go-on-button">${row.state === "running" ? html`<a class="button" href=${to}><${Icon} name="eye" />Follow</a>` : html`<${ContinueButton} session=${row.session} />`}</div>
  </li>`;
}

// -- beside it ---

const SIGNS = { changed: ["≠", "alert"], blocked: ["✕", "alert"], failed: ["✕", "alert"], compaction: ["◆", ""] };
const lookAddress = (one) => sessionAddress(one.session, { record: one.record, view: one.kind === "changed" || one.kind === "blocked" ? "flow" : "" });
const FEW = 4;

function Worth({ told }) {
  const [all, setAll] = useState(false);
  useEffect(() => setAll(false), [told.day]);
  if (!told.worth.length) return null;
  return html`<section aria-labelledby="worth"><div class="home-head"><h2 id="worth">Worth a look</h2></div>
    <ul class="worth">${(all ? told.worth : told.worth.slice(0, FEW)).map((one) => {
      const [sign, tone] = SIGNS[one.kind] || ["●", ""];
      return html`<li><span class=${"worth-sign " + tone} aria-hidden="true">${sign}</span><div class="grow"><a class="link cut2" href=${lookAddress(one)}>${shown(one.text)}</a><div class="dim xs cut">${[shown(one.detail), shown(one.title), one.time ? clock(one.time) : ""].filter(Boolean).join(" · ")}</div></div></li>`;
    })}</ul>
    ${told.worth.length > FEW ? html`<button class="link sm" onClick=${() => setAll(!all)}>${all ? "fewer" : `${told.worth.length - FEW} more`}</button>` : null}
  </section>`;
}

/** The week's most expensive projects, of which bars are made: at most two, and the others. */
function weekProjects(week) {
  const sums = new Map();
  for (const one of week) for (const [name, price] of Object.entries(one.projects)) sums.set(name, (sums.get(name) || 0) + price);
  return [...sums].filter(([name, price]) => name && price).sort((a, b) => b[1] - a[1]).slice(0, 2).map(([name]) => name);
}

function Week({ told }) {
  const most = Math.max(1, ...told.week.map((one) => one.price_usd_micros || 0));
  const projects = weekProjects(told.week);
  const rest = told.week.some((one) => Object.keys(one.projects).some((name) => !projects.includes(name)));
  const facts = [told.week_price_usd_micros !== null ? money(told.week_price_usd_micros) : "", plural(told.week_sessions, "session")].filter(Boolean).join(", ");
  if (!told.week_sessions) return html`<section aria-labelledby="week"><div class="home-head"><h2 id="week">${told.day === dateOf(Date.now()) ? "This week" : "That week"}</h2></div><p class="dim sm week-none">Nothing ran on these days.</p></section>`;
  return html`<section aria-labelledby="week"><div class="home-head"><h2 id="week">${told.day === dateOf(Date.now()) ? "This week" : "That week"}</h2><span class="dim">${facts}</span></div>
    <ol class="week">${told.week.map((one) => {
      const date = new Date(`${one.day}T12:00:00`);
      const parts = [...projects.map((name) => one.projects[name] || 0)];
      const others = (one.price_usd_micros || 0) - parts.reduce((sum, price) => sum + price, 0);
      return html`<li class=${names({ current: one.day === told.day })}><a href=${"/?day=" + one.day} title=${`${dayWords(date)}: ${plural(one.sessions, "session")}${one.price_usd_micros !== null ? ", " + money(one.price_usd_micros) : ""}`}>
        <span class="week-price">${one.price_usd_micros ? roundMoney(one.price_usd_micros) : one.sessions ? plural(one.sessions, "session").replace(/ .*/, "×") : "–"}</span>
        <span class="week-bar" style=${{ height: `${Math.round((one.price_usd_micros || 0) / most * 72)}px` }}>${[others, ...parts.slice().reverse()].map((price, n, all) => (price > 0 ? html`<i class=${n === 0 ? "heat-other" : "heat" + (4 - (all.length - 1 - n))} style=${{ flex: price }}></i>` : null))}</span>
        <span class="week-name">${shortWeekday(date)}</span><span class="screen-reader">${dayWords(date)}, ${plural(one.sessions, "session")}</span>
      </a></li>`;
    })}</ol>
    <div class="week-legend dim xs"><span class="grow">${projects.map((name, n) => html`<span class="key"><i class=${"heat" + (4 - n)}></i>${shown(nameAmong(name, projects))}</span>`)}${rest && projects.length ? html`<span class="key"><i class="heat-other"></i>other</span>` : null}</span><a class="link" href="/stats?since=week">Stats</a></div>
  </section>`;
}

/** $75, $0.42: a bar has little room. */
export function roundMoney(micros) {
  const dollars = micros / 1e6;
  return "$" + (dollars >= 10 ? grouped(String(Math.round(dollars))) : dollars >= 1 ? dollars.toFixed(1).replace(/\.0$/, "") : Number(dollars.toPrecision(2)));
}
