// All of a session's time on one strip, and the window that is looked at: drag its edges, itself, or a new one.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { clock } from "../words.js";
import { drawMap, isoOf } from "./lane_drawing.js";
import { Places } from "./lane_time.js";

const EDGE = 8;

export function LaneMap({ lanes, order, busy, range, show }) {
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const held = useRef(null);
  const places = new Places(busy, [busy.begin, busy.end], Math.max(1, width));
  useEffect(() => {
    const draw = () => {
      const element = canvas.current;
      if (!element) return; // it is gone already
      setWidth(element.clientWidth);
      drawMap(element, lanes, new Places(busy, [busy.begin, busy.end], Math.max(1, element.clientWidth)), order);
    };
    draw();
    const resized = new ResizeObserver(draw);
    resized.observe(canvas.current);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => (resized.disconnect(), themed.disconnect());
  }, [lanes, busy]);
  const [from, to] = range;
  const all = from <= busy.begin && to >= busy.end;
  const left = all ? 0 : places.x(busy.time(from, true));
  const right = all ? width : places.x(busy.time(to));

  const down = (event) => {
    if (event.button) return;
    const x = event.clientX - canvas.current.getBoundingClientRect().left;
    const what = Math.abs(x - left) <= EDGE && !all ? "from" : Math.abs(x - right) <= EDGE && !all ? "to" : x > left && x < right && !all ? "both" : "new";
    held.current = { what, at: places.busyAt(x), x, range };
    event.currentTarget.setPointerCapture(event.pointerId);
  };
  const move = (event) => {
    if (!held.current) return;
    const x = event.clientX - canvas.current.getBoundingClientRect().left;
    if (Math.abs(x - held.current.x) < 3) return;
    const at = Math.max(busy.begin, Math.min(busy.end, places.busyAt(x)));
    const { what, range: before, at: begun } = held.current;
    if (what === "from") show(Math.min(at, before[1]), before[1]);
    else if (what === "to") show(before[0], Math.max(at, before[0]));
    else if (what === "both") show(before[0] + at - begun, before[1] + at - begun);
    else show(Math.min(at, begun), Math.max(at, begun));
  };
  const edge = (which) => (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const step = ((busy.end - busy.begin) / 100) * by;
    if (which === "from") show(Math.max(busy.begin, Math.min(from + step, to)), to);
    else show(from, Math.min(busy.end, Math.max(to + step, from)));
  };
  const slider = (which, value, words) => html`<i class=${"map-edge " + which} role="slider" tabindex="0" aria-label=${words} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(((value - busy.begin) / Math.max(1, busy.end - busy.begin)) * 100)} aria-valuetext=${clock(isoOf(busy.time(value)), true)} style=${{ left: `${which === "from" ? left : right}px` }} onKeyDown=${edge(which)}></i>`;
  return html`<div class="lanes-map">
    <span class="dim xs lanes-map-words">${clock(isoOf(busy.time(from, true)), true)} – ${clock(isoOf(busy.time(to)), true)}</span>
    <div class="map-box" onPointerDown=${down} onPointerMove=${move} onPointerUp=${() => (held.current = null)} onPointerCancel=${() => (held.current = null)} onDblClick=${() => show(busy.begin, busy.end)}>
      <canvas ref=${canvas} aria-hidden="true"></canvas>
      <i class="map-window" style=${{ left: `${left}px`, width: `${Math.max(2, right - left)}px` }}></i>
      ${slider("from", from, "Beginning of what is shown")}${slider("to", to, "End of what is shown")}
    </div>
  </div>`;
}
