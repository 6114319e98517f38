// A piece of text with what was found in it marked.
import { html } from "../html.js";
import { shown } from "../words.js";

/** What a hit is part of. */
export const ROLES = { human: "You", injected: "Injected", assistant: "Answer", thinking: "Thought", call: "Call", result: "Result", system: "Notice", title: "Title", summary: "Summary" };

const LEAD = 24; // characters before the first mark that a single line keeps

/** Places are counted in characters, not in JavaScript's units. `around`: a single line begins near the first of them. */
export function Spots({ text, spots, around = false }) {
  const letters = [...(text || "")];
  const parts = [];
  let from = 0;
  const first = spots?.[0]?.[0] ?? 0;
  if (around && first > LEAD + 16) {
    from = first - LEAD;
    while (from < first && letters[from - 1] !== " ") from += 1;
    parts.push("… ");
  }
  for (const [start, end] of spots || []) {
    if (start < from) continue;
    parts.push(shown(letters.slice(from, start).join("")), html`<mark>${shown(letters.slice(start, end).join(""))}</mark>`);
    from = end;
  }
  return [...parts, shown(letters.slice(from).join(""))];
}
