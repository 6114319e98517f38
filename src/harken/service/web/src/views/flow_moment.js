// A slider over the things that were said: one step for each, so that a night without words takes no room.
import { useRef } from "preact/hooks";
import { html, names } from "../html.js";
import { clock } from "../words.js";
import { colourClass } from "./flow_people.js";
import { toInstant } from "./instants.js";

/** The last moment that is not behind an instant; all of them where there is none. */
export function momentAt(moments, micros) {
  if (!micros) return moments.length - 1;
  let found = -1;
  for (let at = 0; at < moments.length && moments[at][0] <= micros; at++) found = at;
  return found;
}

/** The moment so many steps beside one. What was said at the same instant is one step: it is known together. */
export function momentBeside(moments, at, by) {
  const last = moments.length - 1;
  const now = moments[at]?.[0] ?? -Infinity;
  let next = Math.max(0, Math.min(last, at + by));
  if (by < 0) while (next > 0 && moments[next][0] >= now) next -= 1;
  if (by > 0) while (next < last && (moments[next][0] <= now || moments[next + 1][0] === moments[next][0])) next += 1;
  return next;
}

export function Moment({ moments, people, micros, setMoment, first, last }) {
  const track = useRef(null);
  const held = useRef(false);
  const at = momentAt(moments, micros);
  const whole = Math.max(1, moments.length - 1);
  const part = (n) => `${(Math.max(0, n) / whole) * 100}%`;
  const put = (n) => setMoment(n >= moments.length - 1 ? null : moments[Math.max(0, n)][0]);
  const place = (event) => {
    const boxed = track.current.getBoundingClientRect();
    put(Math.round(((event.clientX - boxed.left) / Math.max(1, boxed.width)) * whole));
  };
  const keys = (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -1e9, End: 1e9 }[event.key];
    if (!by) return;
    event.preventDefault();
    put(momentBeside(moments, at, by));
  };
  // Where there are more moments than pixels, only those that a hook touched and prompts are drawn one by one.
  const drawn = moments.map((one, n) => [one, n]).filter(([one]) => moments.length <= 160 || one[3] || !one[2]).slice(0, 400);
  return html`<div class="moment">
    <span class="moment-end">${clock(first, true)}</span>
    <div class="moment-track" ref=${track} onPointerDown=${(event) => ((held.current = true), event.currentTarget.setPointerCapture(event.pointerId), place(event))} onPointerMove=${(event) => held.current && place(event)} onPointerUp=${() => (held.current = false)} onPointerCancel=${() => (held.current = false)}>
      <i class="moment-past" style=${{ width: part(at) }}></i>
      ${drawn.map(([one, n]) => html`<i class=${names("moment-tick", one[2] ? colourClass(people.get(one[2])) : "cyou", { future: n > at })} style=${{ left: part(n) }}>${one[3] ? html`<b class="alert">${one[3] === "changed" ? "≠" : "✕"}</b>` : null}</i>`)}
      <i class="moment-thumb" role="slider" tabindex="0" aria-label="Moment: what was known by then" aria-valuemin="0" aria-valuemax=${whole} aria-valuenow=${Math.max(0, at)} aria-valuetext=${moments[at] ? `${clock(toInstant(moments[at][0]), true)}, ${at + 1} of ${moments.length} things said` : "before anything was said"} style=${{ left: part(at) }} onKeyDown=${keys}></i>
    </div>
    <span class="moment-end">${clock(last, true)}</span>
  </div>`;
}
