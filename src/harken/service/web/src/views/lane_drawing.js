// How lanes are drawn: on one canvas that is as high as the window, however many agents there are.
import { clock, date, duration, timeOf } from "../words.js";
import { colourOf } from "../marks.js";
import { ticks } from "./lane_time.js";

export const STRENGTH = { thinking: 0.38, tool: 0.68, answer: 1, compaction: 1 };
const THIN = new Set(["waiting", "prompt"]); // an agent that waits does nothing: a line, not a bar
const NEAR = 6; // pixels within which a mark is meant

/** The colours of the page as they are now. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const agents = [1, 2, 3, 4, 5, 6].map((n) => colour("--a" + n));
  return { colour, agent: (order) => agents[colourOf("", order) - 1], font: (size, weight = 400) => `${weight} ${size}px ${colour("--sans")}` };
}

/** A pen on a canvas that has the size it is shown with. */
export function penOf(canvas) {
  const scale = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return [pen, width, height];
}

/** What a tick says: as much of the time as tells it from its neighbours. */
export function tickWords(micros, step) {
  const text = new Date(micros / 1000).toISOString();
  if (step >= 86400) return date(timeOf(text));
  if (timeOf(text).getHours() === 0 && timeOf(text).getMinutes() === 0 && step >= 3600) return date(timeOf(text));
  if (step < 1) return clock(text, true) + "." + String(Math.floor((micros / 1e5) % 10));
  return clock(text, step < 60);
}

export const isoOf = (micros) => new Date(micros / 1000).toISOString();

/** The first element that ends behind a time. */
function firstAfter(segments, time) {
  let low = 0;
  let high = segments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (segments[middle][1] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * All lanes in sight. `view`: { lanes, places, rows: {top, height, bar, head}, scroll, moment, selected, hovered, order }.
 */
export function drawLanes(canvas, view) {
  const [pen, width, height] = penOf(canvas);
  const { places, rows, lanes, scroll } = view;
  const colours = palette();
  const top = (n) => n * rows.height - scroll;
  drawGrid(pen, view, colours, width, height);
  const first = Math.max(0, Math.floor(scroll / rows.height));
  const last = Math.min(lanes.length - 1, Math.ceil((scroll + height) / rows.height));
  for (let n = first; n <= last; n++) drawLane(pen, lanes[n], view, colours, top(n), width);
  drawErrands(pen, view, colours, top);
  drawFolds(pen, places, colours, height);
  if (view.moment !== null) {
    const x = Math.round(places.x(view.moment));
    pen.fillStyle = colours.colour("--accent");
    if (x >= 0 && x <= width) pen.fillRect(x - 0.75, 0, 1.5, height);
  }
}

function drawGrid(pen, { places, rows, lanes, scroll }, colours, width, height) {
  pen.fillStyle = colours.colour("--line");
  const low = Math.min(height, lanes.length * rows.height - scroll);
  for (const [x] of ticks(places)) pen.fillRect(Math.round(x), 0, 1, low);
  for (let n = Math.floor(scroll / rows.height); n * rows.height - scroll <= low; n++) pen.fillRect(0, Math.round(n * rows.height - scroll) - 1, width, 1);
}

function drawLane(pen, lane, view, colours, top, width) {
  const { places, rows } = view;
  const y = top + rows.top;
  const colour = colours.agent(view.order(lane));
  const ink = colours.colour("--ink");
  for (let at = firstAfter(lane.segments, places.busy.time(places.from)); at < lane.segments.length; at++) {
    const [start, end, kind] = lane.segments[at];
    const x = Math.max(-4, places.x(start));
    if (x > width) break;
    const right = Math.min(width + 4, places.x(end));
    pen.fillStyle = kind === "compaction" ? ink : colour;
    if (THIN.has(kind)) {
      pen.globalAlpha = kind === "waiting" ? 0.75 : 0.3;
      pen.fillRect(x, y + rows.bar / 2 - 0.75, Math.max(1, right - x), 1.5);
    } else {
      pen.globalAlpha = STRENGTH[kind] ?? 0.68;
      pen.fillRect(x, y, Math.max(0.8, right - x - (right - x > 3 ? 1 : 0)), rows.bar);
    }
  }
  pen.globalAlpha = 1;
  drawMarks(pen, lane, view, colours, y, width);
  if (view.selected?.lane === lane && view.selected.segment) outline(pen, view.selected.segment, places, colours.colour("--accent"), y, rows.bar, 2.5);
  if (view.hovered?.lane === lane && view.hovered.segment) outline(pen, view.hovered.segment, places, ink, y, rows.bar, 1);
}

function outline(pen, [start, end], places, colour, y, high, thick) {
  const x = places.x(start);
  pen.strokeStyle = colour;
  pen.lineWidth = thick;
  pen.beginPath();
  pen.roundRect(x - 2, y - 2, Math.max(3, places.x(end) - x) + 3, high + 4, 3);
  pen.stroke();
}

/** Signs above and below the bar; where there is no room for signs, a tick for each. */
function drawMarks(pen, lane, { places, rows }, colours, y, width) {
  const seen = lane.marks.map(([time, kind]) => [places.x(time), kind]).filter(([x]) => x >= -1 && x <= width + 1);
  const last = {};
  for (const [place, kind] of seen) {
    const x = Math.max(5, place);
    const crowded = x - (last[kind] ?? -99) < 9;
    if (!crowded) last[kind] = x;
    pen.beginPath();
    if (crowded && kind !== "compaction") {
      pen.fillStyle = colours.colour(kind === "failure" ? "--alert" : "--ink2");
      pen.globalAlpha = 0.6;
      pen.fillRect(place, kind === "failure" ? y + rows.bar + 4 : y - 9, 1, 6);
      pen.globalAlpha = 1;
      continue;
    }
    if (kind === "failure") {
      const low = y + rows.bar + 8;
      pen.strokeStyle = colours.colour("--alert");
      pen.lineWidth = 1.75;
      pen.moveTo(x - 3, low - 3), pen.lineTo(x + 3, low + 3), pen.moveTo(x + 3, low - 3), pen.lineTo(x - 3, low + 3);
      pen.stroke();
    } else {
      pen.fillStyle = colours.colour("--ink");
      const high = y - 8;
      if (kind === "prompt") pen.moveTo(x - 4.5, high - 3.5), pen.lineTo(x + 4.5, high - 3.5), pen.lineTo(x, high + 4);
      else pen.moveTo(x, high - 5), pen.lineTo(x + 5, high), pen.lineTo(x, high + 5), pen.lineTo(x - 5, high);
      pen.fill();
    }
  }
}

const MANY = 24; // lanes from which on only the errands of the chosen one are drawn
const FEW = 6; // the same on a small screen

/** Who asked whom, and when the answer was back: down with dashes, up with dots. */
function drawErrands(pen, view, colours, top) {
  const { lanes, places, rows } = view;
  const place = new Map(lanes.map((lane, n) => [lane.agent, n]));
  const chosen = view.selected?.lane || view.hovered?.lane;
  pen.lineWidth = 1.5;
  lanes.forEach((lane, n) => {
    const above = place.get(lane.parent) ?? (lane.parent === "" ? lanes.findIndex((one) => one.parent === null) : undefined);
    if (above === undefined || above < 0 || above === n || (lanes.length > (places.width < 500 ? FEW : MANY) && lane !== chosen)) return;
    const [high, low] = [top(above) + rows.top + rows.bar, top(n) + rows.top];
    if (lane.told) errand(pen, places.x(lane.told[0]), high + 4, low - 4, colours.agent(view.order(lanes[above])), [4, 3]);
    if (lane.returned) errand(pen, places.x(lane.returned[0]), low - 4, high + 4, colours.agent(view.order(lane)), [1.5, 2.5]);
  });
  pen.setLineDash([]);
}

function errand(pen, x, from, to, colour, dash) {
  const way = Math.sign(to - from);
  pen.strokeStyle = colour;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(x, from), pen.lineTo(x, to);
  pen.stroke();
  pen.setLineDash([]);
  pen.beginPath();
  pen.moveTo(x - 4, to - way * 5), pen.lineTo(x, to), pen.lineTo(x + 4, to - way * 5);
  pen.stroke();
}

/** The pauses that take next to no room: hatched, with how long they were. */
function drawFolds(pen, places, colours, height) {
  for (const gap of places.gaps) {
    const x = places.x(gap.start);
    const w = places.fold;
    if (w < 2) continue;
    pen.fillStyle = colours.colour("--bg");
    pen.fillRect(x, 0, w, height);
    pen.save();
    pen.beginPath();
    pen.rect(x, 0, w, height);
    pen.clip();
    pen.strokeStyle = colours.colour("--line2");
    pen.lineWidth = 1;
    pen.beginPath();
    for (let y = -w; y < height + w; y += 6) pen.moveTo(x, y + w), pen.lineTo(x + w, y);
    pen.stroke();
    pen.restore();
    pen.fillStyle = colours.colour("--line2");
    pen.fillRect(x, 0, 1, height), pen.fillRect(x + w - 1, 0, 1, height);
    if (w >= 15) foldWords(pen, (gap.end - gap.start) / 1e6, x + w / 2, height, colours);
  }
}

/** How long a pause was, in as many words as the lanes have room for. */
function foldWords(pen, seconds, x, height, colours) {
  pen.save();
  pen.font = colours.font(11);
  const exact = duration(seconds);
  const brief = seconds < 3600 ? `${Math.round(seconds / 60)} min` : seconds < 86400 ? `${Math.round(seconds / 3600)} h` : exact.split(" h")[0];
  const words = [exact + " idle", exact].find((one) => pen.measureText(one).width + 8 <= height) || brief;
  const long = pen.measureText(words).width;
  pen.translate(x, height / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillStyle = colours.colour("--bg");
  pen.fillRect(-long / 2 - 6, -8, long + 12, 16);
  pen.fillStyle = colours.colour("--ink2");
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(words, 0, 0);
  pen.restore();
}

/** The times above the lanes. */
export function drawAxis(canvas, places, moment) {
  const [pen, width, height] = penOf(canvas);
  const colours = palette();
  pen.font = colours.font(11);
  pen.textBaseline = "middle";
  pen.fillStyle = colours.colour("--ink3");
  const at = moment === null ? -999 : places.x(moment);
  for (const [x, time, step] of ticks(places)) {
    if (Math.abs(x - at) < 72) continue;
    const words = tickWords(time, step);
    pen.textAlign = x < pen.measureText(words).width / 2 ? "left" : "center";
    pen.fillText(words, Math.max(0, x), height / 2);
  }
  if (at < 0 || at > width) return;
  const words = clock(isoOf(moment), true);
  pen.font = colours.font(11, 600);
  const long = pen.measureText(words).width + 14;
  const left = Math.max(0, Math.min(width - long, at - long / 2));
  pen.fillStyle = colours.colour("--accent");
  pen.beginPath();
  pen.roundRect(left, height / 2 - 9, long, 18, 9);
  pen.fill();
  pen.fillStyle = colours.colour("--on-accent");
  pen.textAlign = "center";
  pen.fillText(words, left + long / 2, height / 2 + 0.5);
}

/** The whole session in a few pixels for each agent. */
export function drawMap(canvas, lanes, places, order) {
  const [pen, width, height] = penOf(canvas);
  const colours = palette();
  const step = Math.min(8, (height - 12) / Math.max(1, lanes.length));
  lanes.forEach((lane, n) => {
    pen.fillStyle = colours.agent(order(lane));
    for (const [start, end, kind] of lane.segments) {
      if (THIN.has(kind)) continue;
      const x = places.x(start);
      pen.fillRect(x, 6 + n * step, Math.max(1, places.x(end) - x), Math.max(1, step * 0.7));
    }
  });
  pen.fillStyle = colours.colour("--alert");
  for (const lane of lanes) for (const [time, kind] of lane.marks) if (kind === "failure") pen.fillRect(places.x(time) - 0.5, height - 5, 1.5, 4);
  for (const gap of places.gaps) {
    pen.fillStyle = colours.colour("--line");
    pen.fillRect(places.x(gap.start), 0, Math.max(1, places.fold), height);
  }
  return width;
}

/** How many agents were at work at the same time, along the window. */
export function drawAtOnce(canvas, lanes, places) {
  const [pen, width, height] = penOf(canvas);
  const counts = new Uint16Array(Math.max(1, Math.ceil(width)));
  for (const lane of lanes) {
    let until = 0;
    for (const [start, end, kind] of lane.segments) {
      if (THIN.has(kind)) continue;
      const from = Math.max(until, Math.round(places.x(start)));
      const to = Math.min(counts.length, Math.max(from + (end > start ? 0 : 1), Math.round(places.x(end))));
      for (let x = Math.max(0, from); x < to; x++) counts[x] += 1;
      until = Math.max(until, to);
    }
  }
  const most = Math.max(1, ...counts);
  pen.fillStyle = palette().colour("--heat-2");
  counts.forEach((n, x) => n && pen.fillRect(x, height - (n / most) * (height - 4), 1, (n / most) * (height - 4)));
}

/** What lies under the pointer: a mark, or a segment. */
export function hit(view, x, y) {
  const { lanes, places, rows, scroll } = view;
  const n = Math.floor((y + scroll) / rows.height);
  const lane = lanes[n];
  if (!lane) return null;
  const mark = lane.marks.reduce((best, one) => {
    const far = Math.abs(places.x(one[0]) - x);
    return far <= NEAR && far < (best?.far ?? Infinity) ? { one, far } : best;
  }, null)?.one;
  const inside = (y + scroll) % rows.height;
  const onMarks = inside < rows.top || inside > rows.top + rows.bar;
  if (mark && onMarks) return { lane, mark, segment: null };
  let best = null;
  for (let at = Math.max(0, firstAfter(lane.segments, places.time(x - 4)) - 1); at < lane.segments.length; at++) {
    const segment = lane.segments[at];
    const [from, to] = [places.x(segment[0]), places.x(segment[1])];
    if (from > x + 4) break;
    const far = x < from ? from - x : x > to ? x - to : 0;
    if (far <= 4 && (best === null || far < best.far)) best = { segment, far };
  }
  return best ? { lane, segment: best.segment, mark: null } : mark ? { lane, mark, segment: null } : { lane, segment: null, mark: null };
}
