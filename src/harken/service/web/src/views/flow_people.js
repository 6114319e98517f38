// Who takes part in a flow: names that people know them by, columns that have room, and where these stand.
import { html } from "../html.js";
import { AgentMark, colourOf } from "../marks.js";
import { shown } from "../words.js";
import { orderOf } from "./agent_order.js";

const LEAST = 124; // pixels of a column
const OUTSIDE = 118; // of the column of whoever is outside
const GUTTER = 68; // of the times at the left

/** By id: { id, name, order, you, column }. */
export function peopleOf(page, columns) {
  const known = new Map((page.agents || []).map((agent) => [agent.id, agent.name]));
  const order = orderOf(page, columns.filter((column) => column.agent));
  const people = new Map();
  for (const column of columns) {
    const you = !column.agent;
    const name = you ? "You" : isName(column.name, column.agent) ? column.name : known.get(column.agent) || column.name;
    people.set(column.agent, { id: column.agent, name, order: you ? 0 : order(column.agent), you, column });
  }
  return people;
}

const isName = (name, id) => name && name !== id;

/** Whoever said what a program put in: nobody of the session, and not you. */
export const PROGRAM = { id: "", name: "Injected", order: 0, you: false, column: null };

/** Who said a row. */
export const speakerOf = (row, people) => (row.kind === "injected" ? PROGRAM : people.get(row.speaker) || nobody(row.speaker));

export const nobody = (id) => ({ id, name: id || "Somebody", order: 0, you: !id, column: null });

export const Person = ({ who, big }) => html`<span class="agent"><${AgentMark} name=${who.name} order=${who.order} big=${big} you=${who.you} /><span class="cut" title=${shown(who.name)}>${who.you ? "You" : shown(who.name)}</span></span>`;

export const colourClass = (who) => (who?.you || who === PROGRAM ? "cyou" : `c${colourOf("", who?.order ?? 0)}`);

/** How many columns fit into a width. */
export const roomFor = (width) => Math.max(2, Math.floor((width - GUTTER) / LEAST));

/** Where columns stand: the middle of each, and how wide a card in it may be. */
export function layOut(columns, width, narrow) {
  if (narrow) {
    const step = Math.min(15, Math.max(8, 96 / Math.max(1, columns.length)));
    const places = new Map(columns.map((column, n) => [column.agent, { x: 10 + n * step, card: 0, left: 10 + n * step - step / 2, width: step }]));
    return { places, gutter: 10 + columns.length * step + 4, width, narrow };
  }
  const outside = columns.some((column) => !column.agent) ? OUTSIDE : 0;
  const each = (width - GUTTER - outside) / Math.max(1, columns.length - (outside ? 1 : 0));
  const places = new Map();
  let left = GUTTER;
  for (const column of columns) {
    const wide = column.agent ? each : outside;
    places.set(column.agent, { x: left + wide / 2, card: Math.min(300, wide - 12), left, width: wide });
    left += wide;
  }
  return { places, gutter: GUTTER, width, narrow };
}
