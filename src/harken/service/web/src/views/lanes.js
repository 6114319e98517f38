// Lanes: when each agent did what. A canvas for the eye, a table for whoever does not see it, one selection for both.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, sessionAddress, setParams } from "../address.js";
import { html, names } from "../html.js";
import { useKeys } from "../keys.js";
import { AgentMark, Icon } from "../marks.js";
import { Loading, Problem, State, useAnswer } from "../states.js";
import { clock, count, duration, modelName, money, plural, shown } from "../words.js";
import { orderOf } from "./agent_order.js";
import { Chooser } from "./chooser.js";
import { toInstant, toMicros } from "./instants.js";
import { drawAtOnce, drawAxis, drawLanes, hit, isoOf } from "./lane_drawing.js";
import { LaneMap } from "./lane_map.js";
import { LanePanel, LaneTable, laneName } from "./lane_panel.js";
import { Busy, Places } from "./lane_time.js";
import { nameOf, splitName } from "./transcript.js";

const MOST = 3000; // segments that are asked for
const WIDE = 760;

export const KIND_WORDS = { thinking: "thinking", tool: "a tool", answer: "answering", prompt: "waiting for you", waiting: "waiting for a sub-agent", compaction: "compaction", failure: "failed", injected: "injected" };

export function Lanes({ page, version }) {
  const [whole, problem, again] = useAnswer("lanes", { session: page.session, segments: MOST }, { key: page.session });
  useEffect(() => void (version && again()), [version]);
  if (problem && !whole) return html`<${Problem} problem=${problem} again=${again} />`;
  if (!whole) return html`<${Loading} what="the lanes" />`;
  if (!whole.lanes.length || !whole.first) {
    return html`<${State} title="Nothing here has a time" actions=${html`<a class="button primary" href=${sessionAddress(page.session)}>Read the transcript</a>`}>
      <p>Lanes show when each agent did what. ${whole.behind ? "The index has not read this session yet; this page asks again when it has." : whole.damaged || whole.problem ? "The index could not read all of the store, so it may know nothing of this session." : "No record of this session says when it was made."}</p><//>`;
  }
  return html`<${Timeline} page=${page} whole=${whole} />`;
}

function Timeline({ page, whole }) {
  const { params } = address.value;
  const [folded, setFolded] = useState(true);
  const [only, setOnly] = useState(null); // the agents that are shown; null for all
  const [hovered, setHovered] = useState(null);
  const busy = useMemo(() => new Busy(toMicros(whole.first), toMicros(whole.last), folded ? whole.gaps : []), [whole, folded]);
  const window_ = windowOf(params.get("w"), busy);
  const part = usePart(page.session, whole, busy, window_);
  const lanes = part.lanes.filter((lane) => !only || only.has(lane.agent));
  const order = orderOf(page, whole.lanes);
  const moment = toMicros(params.get("t"));
  const selected = useMemo(() => selectedIn(part.lanes, params.get("e"), params.get("a")), [part, params.get("e"), params.get("a")]);

  const show = (from, to) => {
    const [begin, end] = busy.clamp(from, to);
    const all = begin <= busy.begin && end >= busy.end;
    setParams({ w: all ? null : `${Math.round(busy.time(begin, true) / 1000)}..${Math.round(busy.time(end) / 1000)}` }, { replace: true });
  };
  const zoom = (factor, around = null) => {
    const centre = around ?? (selected?.segment ? busy.of(selected.segment[1]) : (window_[0] + window_[1]) / 2);
    const inside = Math.max(window_[0], Math.min(window_[1], centre));
    show(inside - (inside - window_[0]) * factor, inside + (window_[1] - inside) * factor);
  };
  const pan = (part_) => show(window_[0] + (window_[1] - window_[0]) * part_, window_[1] + (window_[1] - window_[0]) * part_);
  const choose = (found) => {
    if (!found) return setParams({ e: null, a: null, t: null }, { replace: true });
    const [time, record, index] = found.mark ? [found.mark[0], found.mark[2], found.mark[3]] : found.segment ? [found.segment[1], found.segment[3], found.segment[4]] : [null, "", 0];
    setParams({ e: record ? nameOf({ id: record, index }) : null, a: found.lane.agent || null, t: time === null ? null : toInstant(time) }, { replace: true });
    const at = time === null ? null : busy.of(time);
    if (at !== null && (at < window_[0] || at > window_[1])) show(at - (window_[1] - window_[0]) / 2, at + (window_[1] - window_[0]) / 2);
  };
  useLaneKeys({ page, lanes, selected, choose, zoom, show, busy });

  const view = { lanes, order, busy, window: window_, moment: moment || null, selected, hovered, page, whole };
  return html`<div class="lanes">
    <${Tools} ...${{ whole, order, folded, setFolded, only, setOnly, show, busy, window_ }} />
    <${LaneMap} lanes=${whole.lanes} order=${order} busy=${busy} range=${window_} show=${show} />
    <${Drawing} view=${view} choose=${choose} setHovered=${setHovered} zoom=${zoom} pan=${pan} show=${show} />
    ${whole.unseen_agents ? html`<p class="lanes-unseen sm dim"><b>${plural(whole.unseen_agents, "more agent")}</b> without a lane cost <b>${money(whole.unseen_price_usd_micros)}</b>: only what ${whole.unseen_agents === 1 ? "it" : "each"} used is known.</p>` : null}
    <${LanePanel} page=${page} part=${part} selected=${selected} order=${order} choose=${choose} />
    <${LaneTable} lanes=${part.lanes} />
  </div>`;
}

/** The window that the address names, in busy time; all of it where it names none. */
function windowOf(text, busy) {
  const found = /^(\d{1,16})\.\.(\d{1,16})$/.exec(text || "");
  return found ? busy.clamp(busy.of(Number(found[1]) * 1000), busy.of(Number(found[2]) * 1000)) : [busy.begin, busy.end];
}

/** The lanes of a window in more detail than the whole has; until they are there, the whole does. */
function usePart(session, whole, busy, [from, to]) {
  const isAll = from <= busy.begin && to >= busy.end;
  const isWhole = whole.lanes.every((lane) => lane.segments.every((segment) => segment[5] === 1));
  const [asked, setAsked] = useState(null);
  useEffect(() => {
    if (isAll || isWhole) return void setAsked(null);
    // A little more than is seen, so that a step to the side shows something at once.
    const beside = (to - from) / 3;
    const [begin, end] = [Math.max(busy.begin, from - beside), Math.min(busy.end, to + beside)];
    const later = setTimeout(() => setAsked({ session, start: toInstant(Math.floor(busy.time(begin, true))), end: toInstant(Math.ceil(busy.time(end))), segments: MOST }), 160);
    return () => clearTimeout(later);
  }, [session, from, to, isAll, isWhole]);
  const [found, , again] = useAnswer("lanes", asked || {}, { key: session, skip: !asked });
  useEffect(() => void (asked && again()), [whole]); // it grew, or something in it changed
  return !isAll && asked && found && found.lanes.length === whole.lanes.length && toMicros(found.start) <= busy.time(from) + 1 && toMicros(found.end) >= busy.time(to) - 1 ? found : whole;
}

function selectedIn(lanes, name, agent) {
  const lane = lanes.find((one) => one.agent === (agent || "")) || (agent ? null : lanes[0]);
  if (name) {
    for (const place of splitName(name)) {
      for (const one of agent && lane ? [lane, ...lanes] : lanes) {
        const is = (record, index) => record === place.id && index === place.index;
        const segment = one.segments.find((each) => is(each[3], each[4])) || null;
        const mark = one.marks.find((each) => is(each[2], each[3])) || null;
        if (segment || mark) return { lane: one, segment, mark, record: place };
      }
    }
    const [place] = splitName(name);
    return lane ? { lane, segment: null, mark: null, record: place } : null;
  }
  return agent && lane ? { lane, segment: null, mark: null, record: null } : null;
}

function useLaneKeys({ page, lanes, selected, choose, zoom, show, busy }) {
  const steps = (lane) => lane.segments.filter((segment) => segment[2] !== "prompt");
  const step = (by) => {
    const lane = selected?.lane || lanes[0];
    if (!lane) return false;
    const all = steps(lane);
    const from = selected?.segment ? all.indexOf(selected.segment) : by > 0 ? -1 : all.length;
    const next = all[Math.max(0, Math.min(all.length - 1, from + by))];
    return next ? void choose({ lane, segment: next, mark: null }) : false;
  };
  const agent = (by) => {
    const at = lanes.indexOf(selected?.lane);
    const lane = lanes[Math.max(0, Math.min(lanes.length - 1, at < 0 ? 0 : at + by))];
    if (!lane) return false;
    const time = selected?.segment?.[1];
    const near = time === undefined ? null : steps(lane).reduce((best, one) => (best === null || Math.abs(one[1] - time) < Math.abs(best[1] - time) ? one : best), null);
    choose({ lane, segment: near, mark: null });
    return true;
  };
  const among = (kind, by) => {
    const all = lanes.flatMap((lane) => lane.marks.filter((mark) => mark[1] === kind).map((mark) => ({ lane, mark, segment: null }))).sort((a, b) => a.mark[0] - b.mark[0]);
    const at = selected?.mark?.[0] ?? selected?.segment?.[1] ?? (by > 0 ? -Infinity : Infinity);
    const next = by > 0 ? all.find((one) => one.mark[0] > at) : all.findLast((one) => one.mark[0] < at);
    return next ? void choose(next) : all.length > 0;
  };
  const ends = (at) => {
    const lane = selected?.lane || lanes[0];
    const segment = lane && steps(lane).at(at);
    return segment ? void choose({ lane, segment, mark: null }) : false;
  };
  useKeys({
    later: () => step(1), earlier: () => step(-1), next: () => agent(1), previous: () => agent(-1),
    nextAgent: () => agent(1), previousAgent: () => agent(-1),
    zoomIn: () => zoom(0.5), zoomOut: () => zoom(2), fit: () => show(busy.begin, busy.end),
    first: () => ends(0), last: () => ends(-1),
    nextError: () => among("failure", 1), previousError: () => among("failure", -1),
    nextPrompt: () => among("prompt", 1), previousPrompt: () => among("prompt", -1),
    open: () => (selected?.record ? void setParams({ v: null }) : false),
    close: () => (selected ? void choose(null) : false),
  });
}

function Tools({ whole, order, folded, setFolded, only, setOnly, show, busy, window_ }) {
  const all = window_[0] <= busy.begin && window_[1] >= busy.end;
  const hour = 3600e6;
  const middle = (window_[0] + window_[1]) / 2;
  return html`<div class="lanes-tools">
    <div class="segments" role="group" aria-label="Zoom">
      <button aria-pressed=${all ? "true" : "false"} onClick=${() => show(busy.begin, busy.end)}>Fit</button>
      ${busy.end - busy.begin > hour * 1.5 ? html`<button aria-pressed=${Math.abs(window_[1] - window_[0] - hour) < 1e6 ? "true" : "false"} onClick=${() => show(middle - hour / 2, middle + hour / 2)}>Hour</button>` : null}
      <button aria-label="Zoom in" title="Zoom in (+)" onClick=${() => show(middle - (middle - window_[0]) / 2, middle + (window_[1] - middle) / 2)}>+</button>
      <button aria-label="Zoom out" title="Zoom out (-)" onClick=${() => show(middle - (middle - window_[0]) * 2, middle + (window_[1] - middle) * 2)}>−</button>
    </div>
    ${whole.lanes.length > 1 ? html`<${Agents} lanes=${whole.lanes} order=${order} only=${only} setOnly=${setOnly} />` : null}
    ${whole.gaps.length ? html`<button class=${names("button", { on: folded })} aria-pressed=${folded ? "true" : "false"} onClick=${() => setFolded(!folded)}>Gaps over 5 min folded</button>` : null}
    ${whole.behind ? html`<span class="tag" role="status">the index is catching up</span>` : null}
    <span class="grow"></span>
    <ul class="lanes-legend" aria-label="What the marks mean">
      <li><i class="thinking"></i>thinking</li><li><i class="tool"></i>tool</li><li><i class="answer"></i>answer</li><li><i class="wait"></i>waiting</li>
      <li><b aria-hidden="true">▼</b>prompt</li><li><b aria-hidden="true">◆</b>compaction</li><li class="alert"><b aria-hidden="true">✕</b>failed</li>
    </ul>
  </div>`;
}

/** Which agents have a lane. */
function Agents({ lanes, order, only, setOnly }) {
  const toggle = (agent) => {
    const next = new Set(only || lanes.map((lane) => lane.agent));
    if (!next.delete(agent)) next.add(agent);
    setOnly(next.size === lanes.length || !next.size ? null : next);
  };
  const summary = html`<summary class="button">${count(only ? only.size : lanes.length)} of ${plural(lanes.length, "agent")}<${Icon} name="down" /></summary>`;
  return html`<${Chooser} label="Agents that are shown" summary=${summary}>
      ${only ? html`<button class="link sm" onClick=${() => setOnly(null)}>All of them</button>` : null}
      ${lanes.map((lane) => html`<label><input type="checkbox" checked=${!only || only.has(lane.agent)} onChange=${() => toggle(lane.agent)} /><${AgentMark} name=${laneName(lane)} order=${order(lane)} /><span class="cut">${shown(laneName(lane))}</span></label>`)}
  <//>`;
}

// -- the drawing ---

/** As high as there is room for, within what is easy to read. */
function rowsOf(lanes, { narrow, room }) {
  if (narrow) return { height: 70, top: 36, bar: 22 };
  const height = Math.max(48, Math.min(76, Math.floor(room / Math.max(1, lanes.length))));
  const bar = Math.round(height / 3) - 1;
  return { height, bar, top: Math.round((height - bar) / 2) };
}

function Drawing({ view, choose, setHovered, zoom, pan, show }) {
  const { lanes, busy } = view;
  const canvas = useRef(null);
  const axis = useRef(null);
  const strip = useRef(null);
  const scroller = useRef(null);
  const frame = useRef(null);
  const [size, setSize] = useState({ width: 0, height: 0, room: 0, scroll: 0, narrow: false });
  const rows = rowsOf(lanes, size);
  const places = new Places(busy, view.window, Math.max(1, size.width));
  const drawn = { ...view, places, rows, scroll: size.scroll };
  const latest = useRef(null);
  latest.current = drawn;

  useEffect(() => {
    const measure = () => {
      if (!canvas.current) return; // it is gone already
      setSize((before) => {
        const next = { width: canvas.current.clientWidth, height: scroller.current.clientHeight, room: frame.current.clientHeight - axis.current.clientHeight - (strip.current ? strip.current.parentElement.offsetHeight : 0), scroll: scroller.current.scrollTop, narrow: innerWidth <= WIDE };
        return Object.keys(next).every((key) => next[key] === before[key]) ? before : next;
      });
    };
    measure();
    const resized = new ResizeObserver(measure);
    resized.observe(scroller.current);
    resized.observe(frame.current);
    const themed = new MutationObserver(() => setSize((before) => ({ ...before })));
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => (resized.disconnect(), themed.disconnect());
  }, []);
  useEffect(() => {
    if (!size.width) return undefined;
    const frame = requestAnimationFrame(() => {
      if (!canvas.current || !axis.current) return;
      drawLanes(canvas.current, drawn);
      drawAxis(axis.current, places, view.moment);
      if (strip.current) drawAtOnce(strip.current, lanes, places);
    });
    return () => cancelAnimationFrame(frame);
  });

  // The wheel zooms with Ctrl, or over the lanes where nothing is left to scroll; it pans with Shift or sideways.
  useEffect(() => {
    const element = scroller.current;
    const wheel = (event) => {
      const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      const scrolls = element.scrollHeight > element.clientHeight + 1;
      if (scrolls && !event.ctrlKey && !event.metaKey && !isSideways) return;
      event.preventDefault();
      const box = canvas.current.getBoundingClientRect();
      if (isSideways) pan((event.deltaX || event.deltaY) / Math.max(1, box.width));
      else zoom(Math.exp(Math.max(-0.6, Math.min(0.6, event.deltaY / 300))), latest.current.places.busyAt(event.clientX - box.left));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });
  const drag = useDrag(canvas, latest, { choose, setHovered, show });
  const keys = (event) => {
    const by = { ArrowLeft: -0.2, ArrowRight: 0.2 }[event.key];
    if (by && !event.ctrlKey && !event.altKey && !event.metaKey) (event.preventDefault(), pan(by));
  };
  const seen = lanes.slice(Math.max(0, Math.floor(size.scroll / rows.height) - 2), Math.ceil((size.scroll + size.height) / rows.height) + 2);
  const from = Math.max(0, Math.floor(size.scroll / rows.height) - 2);
  const label = `Timeline of ${plural(lanes.length, "agent")}. Dot and comma step through what an agent did, h and l change the agent, plus and minus zoom; the table below has the same numbers.`;
  return html`<div class="lanes-drawing" ref=${frame}>
    <div class="lanes-axis" aria-hidden="true"><span></span><canvas ref=${axis}></canvas></div>
    <div class="lanes-body" ref=${scroller} tabindex="0" role="application" aria-roledescription="timeline" aria-label=${label} onKeyDown=${keys} onScroll=${(event) => setSize((before) => ({ ...before, scroll: event.target.scrollTop }))}>
      <div class="lanes-sheet" style=${{ height: `${lanes.length * rows.height}px` }}>
        ${seen.map((lane, n) => html`<${Label} key=${lane.agent} lane=${lane} view=${view} top=${(from + n) * rows.height} choose=${choose} />`)}
        <div class="lanes-stay" style=${{ height: `${Math.min(size.height || 1, lanes.length * rows.height)}px` }}><canvas ref=${canvas} ...${drag} aria-hidden="true"></canvas></div>
      </div>
      <${Hover} drawn=${drawn} />
    </div>
    ${lanes.length > 1 ? html`<div class="lanes-once" aria-hidden="true"><span><b>At once</b> <span class="dim xs">up to ${plural(view.whole.at_once, "agent")}</span></span><canvas ref=${strip}></canvas></div>` : null}
  </div>`;
}

function Label({ lane, view, top, choose }) {
  const facts = [plural(lane.calls, "call"), lane.failed ? html`<span class="alert">${count(lane.failed)} failed</span>` : "", money(lane.price_usd_micros), lane.model.startsWith("<") ? "" : modelName(lane.model)].filter(Boolean);
  const chosen = view.selected?.lane.agent === lane.agent;
  return html`<button class=${names("lane-label", { chosen })} style=${{ transform: `translateY(${top}px)` }} aria-pressed=${chosen ? "true" : "false"} title=${shown(laneName(lane))} onClick=${() => choose(chosen && !view.selected.record ? null : { lane, segment: null, mark: null })}>
    <${AgentMark} name=${laneName(lane)} order=${view.order(lane)} /><span class="lane-words"><b class="cut">${shown(laneName(lane))}</b><span class="cut dim xs">${facts.map((one, n) => html`${n ? " · " : ""}${one}`)}</span></span>
  </button>`;
}

/** What the pointer is over, in words. */
function Hover({ drawn }) {
  const { hovered, places, rows, lanes } = drawn;
  if (!hovered || (!hovered.segment && !hovered.mark)) return null;
  const { lane, segment, mark } = hovered;
  const x = Math.max(0, Math.min(places.width - 180, places.x(mark ? mark[0] : Math.max(segment[0], places.busy.time(places.from)))));
  const style = { transform: `translate(${x}px, ${lanes.indexOf(lane) * rows.height + rows.top + rows.bar + 6}px)` };
  return html`<div class="lane-hover" style=${style}>
    ${mark ? html`<b>${mark[1] === "failure" ? "✕ failed" : mark[1] === "prompt" ? "▼ prompt" : "◆ compaction"}</b> ${clock(isoOf(mark[0]), true)}${mark[4] > 1 ? ` · ${mark[4]} here` : ""}` : html`<b>${KIND_WORDS[segment[2]] || segment[2]}</b> ${duration((segment[1] - segment[0]) / 1e6)} · ${clock(isoOf(segment[0]), true)}${segment[5] > 1 ? ` · ${count(segment[5])} steps` : ""}`}
  </div>`;
}

/** A click selects, a drag moves the window, two fingers are left to the browser. */
function useDrag(canvas, latest, { choose, setHovered, show }) {
  const held = useRef(null);
  const place = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  return {
    onPointerDown: (event) => {
      if (event.button) return;
      held.current = { from: place(event)[0], window: latest.current.window, scale: latest.current.places.scale, moved: false };
      canvas.current.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event) => {
      const [x, y] = place(event);
      if (!held.current) {
        const found = hit(latest.current, x, y);
        return setHovered((before) => (before?.segment === found?.segment && before?.mark === found?.mark && before?.lane === found?.lane ? before : found));
      }
      const by = held.current.from - x;
      if (Math.abs(by) > 4) held.current.moved = true;
      if (held.current.moved) show(held.current.window[0] + by / held.current.scale, held.current.window[1] + by / held.current.scale);
      return undefined;
    },
    onPointerUp: (event) => {
      const was = held.current;
      held.current = null;
      if (!was || was.moved) return;
      const found = hit(latest.current, ...place(event));
      if (found?.segment || found?.mark) choose(found);
    },
    onPointerCancel: () => (held.current = null),
    onPointerLeave: () => setHovered(null),
    onDblClick: (event) => {
      const found = hit(latest.current, ...place(event));
      if (found?.segment) {
        const { busy } = latest.current;
        const [from, to] = [busy.of(found.segment[0]), busy.of(found.segment[1])];
        show(from - (to - from) / 2, to + (to - from) / 2);
      }
    },
  };
}
