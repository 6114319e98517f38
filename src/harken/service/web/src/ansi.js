// What a terminal would show: colours as classes, everything else that a program may send to one is left out.
import { html } from "./html.js";
import { shown } from "./words.js";

const SEQUENCE = /\u001b(?:\[([0-9;?]*)([A-Za-z])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

export const hasAnsi = (text) => text.includes("\u001b");

/** Text of a terminal as elements. */
export function Ansi({ text }) {
  if (!text || !hasAnsi(text)) return shown(text || "");
  const found = [];
  let style = { colour: "", bold: false, dim: false };
  let from = 0;
  for (const match of text.matchAll(SEQUENCE)) {
    put(found, text.slice(from, match.index), style);
    from = match.index + match[0].length;
    if (match[2] === "m") style = changed(style, match[1]);
  }
  put(found, text.slice(from), style);
  return found;
}

function put(found, text, { colour, bold, dim }) {
  if (!text) return;
  const name = [colour && "ansi-" + colour, bold && "ansi-bold", dim && "ansi-dim"].filter(Boolean).join(" ");
  found.push(name ? html`<span class=${name}>${shown(text)}</span>` : shown(text));
}

function changed(style, codes) {
  let next = { ...style };
  const numbers = (codes || "0").split(";").map(Number);
  for (let at = 0; at < numbers.length; at++) {
    const n = numbers[at];
    if (n === 0) next = { colour: "", bold: false, dim: false };
    else if (n === 1) next.bold = true;
    else if (n === 2) next.dim = true;
    else if (n === 22) next.bold = next.dim = false;
    else if (n === 39) next.colour = "";
    else if ((n >= 30 && n <= 37) || (n >= 90 && n <= 97)) next.colour = String(n % 10);
    else if (n === 38 || n === 48) at += numbers[at + 1] === 2 ? 4 : 2; // a colour of its own: the theme's is kept
  }
  return next;
}
