// The branching drawing beside rows of commits. The server says in which columns marks and lines stand; here they get
// their colours (a line has that of the commit it comes down from) and become elements.
import { html } from "../html.js";
import { colourOf } from "../marks.js";

const RUNTIMES = { "claude-code": 1, codex: 2, harken: 3, "std-001": 4, "std-008": 4, otel: 5 };
export const MIDDLE = 18; // where a mark stands in its row, from the top
export const FOLDED_MIDDLE = 14;
const WIDEST = 176;

const colourOfRow = (row) => (row.spawned || (row.agent && row.agent !== row.runtime) ? colourOf(row.agent) : RUNTIMES[row.runtime] || colourOf(row.runtime));

/** Give rows (in order, newest first) their lines; `before` are the lines that come down from the row above them. */
export function withLines(rows, before) {
  let lines = new Map(before || []);
  const found = rows.map((row) => {
    const own = { colour: colourOfRow(row), dashed: row.parent_spawned && !row.continues, dotted: row.kind === "folded" };
    const edges = row.above.map(([from, to]) => ({ from, to, ...(lines.get(from) || { colour: (from % 6) + 1 }) }));
    lines = new Map(edges.filter((edge) => edge.to !== row.column).map((edge) => [edge.to, { colour: edge.colour, dashed: edge.dashed }]));
    if (row.parent) lines.set(row.column, { colour: own.colour, dashed: own.dashed });
    return { ...row, colour: own.colour, edges, below: [...lines].map(([column, line]) => ({ column, ...line })) };
  });
  return [found, [...lines]];
}

/** How far columns stand apart, so that many of them still leave room for words. */
export const stepOf = (columns) => Math.max(5, Math.min(22, WIDEST / Math.max(1, columns)));
export const gutterWidth = (columns) => Math.round(Math.min(columns, WIDEST / 5) * stepOf(columns) + 10);

function curve(edge, place, middle) {
  const [x, to] = [place(edge.from), place(edge.to)];
  return x === to ? `M${x} 0V${middle}` : `M${x} 0C${x} ${middle * 0.7} ${to} ${middle * 0.3} ${to} ${middle}`;
}

export function Gutter({ row, columns }) {
  const middle = row.kind === "folded" ? FOLDED_MIDDLE : MIDDLE;
  const step = stepOf(columns);
  const place = (column) => Math.round(Math.min(column, WIDEST / 5) * step + step / 2 + 5);
  const x = place(row.column);
  const dotted = (column) => row.kind === "folded" && column === row.column;
  return html`<span class="gutter" style=${{ width: gutterWidth(columns) + "px" }}><svg width=${gutterWidth(columns)} aria-hidden="true">
    ${row.edges.map((edge) => html`<path class=${`line c${edge.colour}`} stroke-dasharray=${dotted(edge.to) ? "2 4" : edge.dashed ? "3 3" : null} d=${curve(edge, place, middle)} />`)}
    ${row.below.map((line) => html`<line class=${`line c${line.colour}`} stroke-dasharray=${dotted(line.column) ? "2 4" : line.dashed ? "3 3" : null} x1=${place(line.column)} x2=${place(line.column)} y1=${middle} y2="100%" />`)}
    <${Shape} kind=${shapeOf(row)} x=${x} y=${middle} class=${`c${row.colour}`} />
  </svg></span>`;
}

/** ● a turn, ◆ a compaction, ■ carried over or a snapshot, ○ rewound, nothing for a folded run */
export function shapeOf(row) {
  if (row.kind === "folded") return "folded";
  if (row.superseded) return "rewound";
  if (row.kind === "compaction") return "compaction";
  if (row.kind === "snapshot" || row.continues) return "carried";
  return "turn";
}

export function Shape({ kind, x = 6, y = 6, class: name = "" }) {
  if (kind === "folded") return null;
  if (kind === "compaction") return html`<path class=${"shape " + name} d=${`M${x} ${y - 6}l6 6-6 6-6-6z`} />`;
  if (kind === "carried") return html`<rect class=${"shape " + name} x=${x - 4.5} y=${y - 4.5} width="9" height="9" />`;
  if (kind === "rewound") return html`<circle class=${"shape hollow " + name} cx=${x} cy=${y} r="4" />`;
  return html`<circle class=${"shape " + name} cx=${x} cy=${y} r="4.5" />`;
}

export const SHAPES = [["turn", "turn"], ["compaction", "compaction"], ["carried", "carried over, snapshot"], ["rewound", "rewound"]];

export const Legend = () =>
  html`<div class="commit-legend"><ul aria-label="What the marks mean">${SHAPES.map(([kind, words]) => html`<li><svg width="12" height="12" aria-hidden="true"><${Shape} kind=${kind} /></svg>${words}</li>`)}<li><svg width="20" height="12" aria-hidden="true"><path class="line" stroke-dasharray="3 3" d="M0 6H20" /></svg>sub-agent</li></ul>
  <span class="grow"></span><span><kbd>a</kbd> <kbd>b</kbd> compare</span><span><kbd>c</kbd> continue</span><span><kbd>z</kbd> fold</span></div>`;
