// What changed between two texts, by line or by word; large ones are told in a sentence, since comparing takes too long.
import { diffLines, diffWordsWithSpace } from "diff";
import { html } from "./html.js";
import { shown } from "./words.js";

const LARGE = 200_000;
const AROUND = 3; // lines that stay the same and are shown beside those that do not

/** Two versions of a piece of a file. */
export function LineDifference({ before, after, path }) {
  if (before.length + after.length > LARGE) return html`<p class="dim pad">Too large to compare here: ${before.length} and ${after.length} characters</p>`;
  const parts = diffLines(before, after, { maxEditLength: 2000 });
  if (!parts) return html`<p class="dim pad">The two differ almost everywhere</p>`;
  const lines = [];
  parts.forEach((part, at) => {
    const own = part.value.replace(/\n$/, "").split("\n");
    const sign = part.added ? "+" : part.removed ? "\u2212" : " ";
    if (sign !== " ") own.forEach((line) => lines.push([sign, line]));
    else {
      const head = at ? own.slice(0, AROUND) : [];
      const foot = at < parts.length - 1 ? own.slice(Math.max(head.length, own.length - AROUND)) : [];
      const left = own.length - head.length - foot.length;
      head.forEach((line) => lines.push([" ", line]));
      if (left > 0) lines.push(["\u2026", `${left} lines as before`]);
      foot.forEach((line) => lines.push([" ", line]));
    }
  });
  return html`<div class="diff" role="group" aria-label=${"Changes" + (path ? " of " + path : "")}>
    ${lines.slice(0, 400).map(([sign, line]) => html`<div class=${{ "+": "added", "\u2212": "removed", "\u2026": "left" }[sign] || ""}><b aria-label=${sign === "+" ? "added" : sign === "\u2212" ? "removed" : null}>${sign}</b><span>${shown(line)}</span></div>`)}
    ${lines.length > 400 ? html`<div class="left"><b></b><span>${lines.length - 400} more lines</span></div>` : null}
  </div>`;
}

export function lineCounts(before, after) {
  if (before.length + after.length > LARGE) return null;
  const parts = diffLines(before, after, { maxEditLength: 2000 });
  if (!parts) return null;
  const sum = (which) => parts.filter((part) => part[which]).reduce((n, part) => n + part.count, 0);
  return { added: sum("added"), removed: sum("removed") };
}

/** What was said, and what was heard of it. */
export function WordDifference({ before, after }) {
  if (before === after) return shown(after);
  const parts = before.length + after.length > LARGE ? null : diffWordsWithSpace(before, after, { maxEditLength: 1500 });
  if (!parts) return html`<del>${shown(before)}</del> <ins>${shown(after)}</ins>`;
  return parts.map((part) => (part.added ? html`<ins>${shown(part.value)}</ins>` : part.removed ? html`<del>${shown(part.value)}</del>` : shown(part.value)));
}
