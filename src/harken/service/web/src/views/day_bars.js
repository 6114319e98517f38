// A day as it ran: a bar for each session, by project, in as few lines as they need.
import { useLayoutEffect, useRef } from "preact/hooks";
import { sessionAddress } from "../address.js";
import { html, names } from "../html.js";
import { RuntimeMark, runtimeColour } from "../marks.js";
import { clock, plural, shown } from "../words.js";
import { nameAmong } from "./pieces.js";

const HOUR = 3600_000;
const SHORTEST = 6; // hours that are shown at least
const PROJECTS = 12;
const LINES = 5;
const APART = 1.2; // percent of the width between two bars in one line
const MARGIN = 96; // pixels behind the bar that is scrolled to, for its words
const NARROW = 10; // percent of the width under which a bar has its words beside it, where there is room

/** The hours that are shown: whole ones around everything that ran, and not fewer than a few. */
function hoursOf(bars, start, end, now) {
  const begins = Math.min(...bars.map((one) => Date.parse(one.start)));
  const ends = Math.max(...bars.map((one) => Date.parse(one.end)), now && now < end ? now : 0);
  let from = Math.max(0, Math.floor((begins - start) / HOUR));
  let to = Math.min(Math.round((end - start) / HOUR), Math.ceil((ends - start) / HOUR));
  while (to - from < SHORTEST) {
    if (from > 0) from -= 1;
    if (to - from < SHORTEST && to < 24) to += 1;
  }
  return [from, to];
}

/** Bars of one project in lines in which none covers another. */
function linesOf(bars, place) {
  const lines = [];
  for (const one of bars) {
    const [left, width] = place(one);
    const line = lines.find((held) => held.end + APART <= left) || (lines.length < LINES && lines[lines.push({ end: 0, bars: [] }) - 1]);
    if (!line) {
      lines.left = (lines.left || 0) + 1;
      continue;
    }
    line.bars.push({ one, left, width, room: 0 });
    line.end = left + width;
  }
  for (const { bars: held } of lines) held.forEach((bar, n) => (bar.room = (held[n + 1]?.left ?? 100) - bar.left - bar.width - APART));
  return lines;
}

/** Where there is no room for the day, what ran last is seen first. */
function showLast(box) {
  const ends = [...box.querySelectorAll(".day-bar")].map((bar) => bar.getBoundingClientRect().right);
  box.scrollLeft += Math.max(0, Math.max(...ends) - box.getBoundingClientRect().right + MARGIN);
}

export function DayBars({ told, isToday }) {
  const bars = told.bars.filter((one) => one.start && one.end);
  const box = useRef(null);
  const any = bars.length > 0;
  useLayoutEffect(() => {
    if (any) showLast(box.current);
  }, [told.start, any]);
  if (!any) return null;
  const start = Date.parse(told.start);
  const now = isToday ? Date.now() : 0;
  const [from, to] = hoursOf(bars, start, Date.parse(told.end), now);
  const span = (to - from) * HOUR;
  const at = (time) => ((Date.parse(time) - start - from * HOUR) / span) * 100;
  const place = (one) => [Math.max(0, at(one.start)), Math.max(0.5, Math.min(100, at(one.end)) - Math.max(0, at(one.start)))];
  const projects = Map.groupBy ? Map.groupBy(bars, (one) => one.project) : group(bars);
  const step = to - from > 12 ? 3 : to - from > 7 ? 2 : 1;
  const hours = Array.from({ length: to - from + 1 }, (_, n) => from + n).filter((hour) => hour % step === 0 && hour < to);
  const shownProjects = [...projects].slice(0, PROJECTS);
  const runtimes = [...new Set(bars.map((one) => one.runtime))];
  return html`<section class="day-bars" aria-labelledby="ran">
    <div class="home-head"><h2 id="ran">${isToday ? "Today" : "The day"}, as it ran</h2><span class="grow"></span><span class="dim sm">one bar is one session; times are yours</span></div>
    <div class="scroll-x" ref=${box} tabindex="0" role="group" aria-label="Sessions of the day"><div class="day-grid">
      <div class="day-hours" aria-hidden="true"><span></span><div>${hours.map((hour) => html`<i style=${{ left: `${((hour - from) / (to - from)) * 100}%` }}>${String(hour).padStart(2, "0")}</i>`)}</div></div>
      ${shownProjects.map(([project, own]) => {
        const lines = linesOf(own, place);
        return lines.map(
          (line, n) => html`<div class=${names("day-line", { first: !n })}>
            <span class="cut" title=${shown(project)}>${n ? (lines.left && n === lines.length - 1 ? html`<span class="dim xs">${lines.left} more</span>` : "") : project ? shown(nameAmong(project, [...projects.keys()])) : html`<span class="dim">no project</span>`}</span>
            <div>${line.bars.map((bar) => html`<${Bar} ...${bar} />`)}
              ${now && now > start + from * HOUR ? html`<i class="day-now" style=${{ left: `${((now - start - from * HOUR) / span) * 100}%` }}></i>` : null}</div>
          </div>`,
        );
      })}
    </div></div>
    <p class="day-legend dim xs">${runtimes.map((name) => html`<${RuntimeMark} runtime=${name} />`)}${projects.size > PROJECTS ? html`<span>${plural(projects.size - PROJECTS, "more project")} not drawn</span>` : null}</p>
  </section>`;
}

function Bar({ one, left, width, room }) {
  const beside = width < NARROW && room > width;
  const words = `${shown(one.title)}, ${clock(one.start)} to ${clock(one.end)}`;
  return html`<a class=${names("day-bar", "c" + runtimeColour(one.runtime), { running: one.running })} style=${{ left: `${left}%`, width: `${width}%` }} href=${sessionAddress(one.session)} aria-label=${words} title=${words}>${beside || width < 2 ? null : html`<span class="cut">${shown(one.title)}</span>`}</a>
    ${beside && room > 5 ? html`<span class="day-beside cut dim xs" aria-hidden="true" style=${{ left: `${left + width}%`, maxWidth: `${room}%` }}>${shown(one.title)}</span>` : null}`;
}

function group(bars) {
  const found = new Map();
  for (const one of bars) found.set(one.project, [...(found.get(one.project) || []), one]);
  return found;
}
