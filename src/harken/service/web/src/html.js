// Elements are written with htm and made by Preact. Text is always text: nothing here, or anywhere in the page, makes
// HTML of a string.
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);

/** Class names from what is true: `names("row", { selected })`. */
export function names(...given) {
  const found = [];
  for (const one of given) {
    if (!one) continue;
    if (typeof one === "string") found.push(one);
    else for (const [name, on] of Object.entries(one)) if (on) found.push(name);
  }
  return found.join(" ");
}
