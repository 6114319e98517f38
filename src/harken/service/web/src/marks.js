// Small drawings: icons, the mark of an agent, the strip of a session, a gauge. A mark carries the meaning, colour repeats it.
import { html } from "./html.js";
import { runtimeName, shown } from "./words.js";

const PATHS = {
  home: "M2 7.2 7.5 2.4 13 7.2V13H9.2V9.4H5.8V13H2z",
  list: "M2 3.8h11M2 7.5h11M2 11.2h11",
  branch: "M4 4.4v6.2M4 9c4.6 0 7-.6 7-3.2M4 2.2v.1M4 12.8v-.1M11 3.4v.1",
  chart: "M3 12.6V8.4M7.5 12.6V3M12 12.6V6",
  page: "M3.6 1.6h5.2l2.8 2.8v9H3.6zM8.6 1.8v2.8h2.8",
  search: "M6.4 10.6a4.2 4.2 0 1 0 0-8.4 4.2 4.2 0 0 0 0 8.4zM9.6 9.6l3.4 3.4",
  sun: "M7.5 10.2a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4zM7.5 1.4v1.2M7.5 12.4v1.2M1.4 7.5h1.2M12.4 7.5h1.2M3.2 3.2l.8.8M11 11l.8.8M3.2 11.8l.8-.8M11 4l.8-.8",
  link: "M6.2 8.8a2.4 2.4 0 0 0 3.4 0l2.2-2.2a2.4 2.4 0 0 0-3.4-3.4l-.9.9M8.8 6.2a2.4 2.4 0 0 0-3.4 0L3.2 8.4a2.4 2.4 0 0 0 3.4 3.4l.9-.9",
  copy: "M5 5h7.4v7.4H5zM10 5V2.6H2.6V10H5",
  play: "M4.4 2.8v9.4l7.4-4.7z",
  down: "M3.6 5.6l3.9 3.9 3.9-3.9",
  right: "M5.6 3.6l3.9 3.9-3.9 3.9",
  up: "M3.6 9.4l3.9-3.9 3.9 3.9",
  close: "M3.4 3.4l8.2 8.2M11.6 3.4l-8.2 8.2",
  command: "M2.6 4l3 3.2-3 3.2M7.4 10.6h4.8",
  edit: "M2.4 12.6v-2.4l7.2-7.2 2.4 2.4-7.2 7.2zM8.2 4.4l2.4 2.4",
  read: "M3.4 1.8h5.4l2.8 2.8v8.6H3.4zM5.4 7h4.2M5.4 9.6h4.2",
  web: "M7.5 13a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM2 7.5h11M7.5 2c2.6 2.6 2.6 8.4 0 11M7.5 2c-2.6 2.6-2.6 8.4 0 11",
  agent: "M7.5 6.8a2.4 2.4 0 1 0 0-4.8 2.4 2.4 0 0 0 0 4.8zM3 13c.3-3 2-4.4 4.5-4.4S11.7 10 12 13",
  task: "M2 4l1.2 1.2L5.4 3M2 9.6l1.2 1.2 2.2-2.2M7.6 4.2h5M7.6 9.8h5",
  ask: "M5.4 5.6c0-2.8 4.4-2.8 4.4 0 0 1.8-2.2 1.8-2.2 3.8M7.6 12v.2",
  thought: "M4 10.6C2.6 9.8 2 8.6 2 7.2 2 4.4 4.4 2.4 7.6 2.4S13 4.4 13 7.2s-2.2 4.6-5.2 4.6c-.7 0-1.4-.1-2-.3L3.4 12.8z",
  other: "M3.4 7.5h.1M7.5 7.5h.1M11.6 7.5h.1",
  eye: "M1.4 7.5C3.6 4 5.6 3 7.5 3s3.9 1 6.1 4.5C11.4 11 9.4 12 7.5 12s-3.9-1-6.1-4.5zM7.5 9.2a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4z",
  fork: "M4 4.4v6.4M4 10c0-3.4 7-1.6 7-4.6M4 2.2v.1M4 13v-.1M11 3.2v.1",
  save: "M7.5 2v7.2M4.4 6.4l3.1 3.1 3.1-3.1M2.6 12.6h9.8",
};

export const Icon = ({ name, label }) =>
  html`<svg class="icon" viewBox="0 0 15 15" role=${label ? "img" : null} aria-label=${label} aria-hidden=${label ? null : "true"}><path d=${PATHS[name] || PATHS.other} /></svg>`;

/** The sign of Harken: something said, and heard. */
export const Sign = () =>
  html`<svg class="sign" viewBox="0 0 20 20" aria-hidden="true"><circle cx="4" cy="10" r="2.1" /><path d="M8.4 5.4a6.6 6.6 0 0 1 0 9.2M12.2 2.4a11 11 0 0 1 0 15.2" /></svg>`;

// -- agents ---

const COLOURS = 6;
const known = new Map();

/** The colour of an agent, a number from 1 to 6; the order in which they are first seen decides, in one session. */
export function colourOf(name, order) {
  if (order !== undefined) return (order % COLOURS) + 1;
  if (!known.has(name)) {
    let sum = 0;
    for (const letter of name || "") sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
    known.set(name, (sum % COLOURS) + 1);
  }
  return known.get(name);
}

const RUNTIME_MARKS = { "claude-code": ["CC", 1], codex: ["Cx", 2], harken: ["Ha", 3], "std-001": ["Do", 4], "std-008": ["Do", 4], otel: ["OT", 5] };

export function letters(name) {
  const words = String(name || "?").replace(/[^\p{L}\p{N} _-]/gu, "").split(/[ _-]+/).filter(Boolean);
  if (!words.length) return "?";
  return words.length > 1 ? words[0][0] + words[1][0] : [...words[0]].slice(0, 2).join("");
}

export const AgentMark = ({ name, order, big, you }) =>
  html`<span class=${`agent-mark c${you ? "you" : colourOf(name, order)}${big ? " big" : ""}`} aria-hidden="true">${you ? "Y" : letters(name)}</span>`;

export const Agent = ({ name, order, big, you }) =>
  html`<span class="agent"><${AgentMark} name=${name} order=${order} big=${big} you=${you} /><span class="cut">${you ? "You" : shown(name)}</span></span>`;

/** The colour of a program, as its mark has it. */
export const runtimeColour = (runtime) => RUNTIME_MARKS[runtime]?.[1] ?? colourOf(runtime);

export const RuntimeMark = ({ runtime, bare }) => {
  const [mark, colour] = RUNTIME_MARKS[runtime] || [letters(runtime), colourOf(runtime)];
  const sign = html`<span class=${`agent-mark c${colour}`} aria-hidden="true">${mark}</span>`;
  return bare ? html`<span title=${runtimeName(runtime)}>${sign}</span>` : html`<span class="agent">${sign}<span class="cut">${runtimeName(runtime)}</span></span>`;
};

// -- the strip of a session ---

const STRIP = {
  r: ["reading", 5, 6],
  c: ["command", 9, 0],
  e: ["edit", 7, 0],
  a: ["agent", 11, 0],
  o: ["other", 5, 4],
};

const WIDEST = 8; // a few calls are a short strip, not one of wide bars

/** One bar for each call: reading is light and low, edits have the accent, failures hang below the line. */
export function Strip({ letters: given, width = 132, label = true }) {
  if (!given) return null;
  const step = Math.min(WIDEST, width / given.length);
  const bars = [];
  let failures = 0;
  for (let at = 0; at < given.length; at++) {
    const letter = given[at];
    const x = at * step;
    const w = Math.max(0.8, step - (step > 2 ? 0.8 : 0));
    if (letter === "|") bars.push(html`<rect class="fold" x=${x} y="0" width=${Math.max(1.5, Math.min(w, 2))} height="18" />`);
    else if (letter === "p") bars.push(html`<rect class="prompt" x=${x} y="1" width=${Math.max(1, Math.min(w, 2))} height="10" />`);
    else {
      const small = letter.toLowerCase();
      const [name, height] = STRIP[small] || STRIP.o;
      if (letter !== small) {
        failures += 1;
        bars.push(html`<rect class="failed" x=${x} y="12" width=${w} height="5" />`);
      }
      bars.push(html`<rect class=${name} x=${x} y=${11 - height} width=${w} height=${height} />`);
    }
  }
  const words = label ? `${given.length} steps${failures ? `, ${failures} failed` : ""}` : null;
  return html`<svg class="strip" viewBox=${`0 0 ${width} 18`} preserveAspectRatio="none" role=${label ? "img" : null} aria-label=${words} aria-hidden=${label ? null : "true"}>${bars}</svg>`;
}

/** How much of a whole is used; from three quarters on it is said in red and in numbers. */
export const Gauge = ({ part, label }) =>
  html`<span class=${"gauge" + (part > 0.75 ? " hot" : "")} role="img" aria-label=${label || `${Math.round(part * 100)} %`}><i style=${{ width: `${Math.max(2, Math.min(100, part * 100))}%` }}></i></span>`;

export const Key = ({ children }) => html`<kbd>${children}</kbd>`;

export const Mark = ({ sign, class: name = "" }) => html`<span class=${"sign-mark " + name} aria-hidden="true">${sign}</span>`;
