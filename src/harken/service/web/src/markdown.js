// Markdown as elements: what models write, and no more of it. The words come from models and tools, so no HTML of theirs
// is made, links go to the web alone, and pictures are links. Every line is looked at once, every letter a few times.
import { html } from "./html.js";
import { shown } from "./words.js";

const LONGEST = 60_000; // a longer text is shown as it is
const DEEPEST = 8; // lists in lists, quotations in quotations

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(?=\S)/;
const TABLE_LINE = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

export function Markdown({ text }) {
  if (!text) return null;
  if (text.length > LONGEST) return html`<div class="plain">${shown(text)}</div>`;
  return html`<div class="prose">${blocks(text.split("\n"), 0)}</div>`;
}

function blocks(lines, depth) {
  const made = [];
  let at = 0;
  while (at < lines.length) {
    const [next, block] = readBlock(lines, at, depth);
    if (block) made.push(block);
    at = next;
  }
  return made;
}

/** The block that begins at a line: the line behind it, and what it is. */
function readBlock(lines, at, depth) {
  const line = lines[at];
  if (!line.trim()) return [at + 1, null];
  let found;
  if ((found = FENCE.exec(line))) return readCode(lines, at, found[1]);
  if ((found = HEADING.exec(line))) return [at + 1, html`<p class=${"heading h" + Math.min(found[1].length, 4)} role="heading" aria-level=${Math.min(found[1].length + 2, 6)}>${inline(found[2])}</p>`];
  if (RULE.test(line)) return [at + 1, html`<hr />`];
  if (depth < DEEPEST && QUOTE.test(line)) return readQuote(lines, at, depth);
  if (depth < DEEPEST && ITEM.test(line)) return readList(lines, at, depth);
  if (line.includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && TABLE_LINE.test(lines[at + 1])) return readTable(lines, at);
  return readParagraph(lines, at);
}

function readCode(lines, at, fence) {
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(fence)) end += 1;
  return [end + 1, html`<pre class="code" tabindex="0"><code>${shown(lines.slice(at + 1, end).join("\n"))}</code></pre>`];
}

function readQuote(lines, at, depth) {
  let end = at;
  while (end < lines.length && lines[end].trim() && (QUOTE.test(lines[end]) || end > at)) end += 1;
  return [end, html`<blockquote>${blocks(lines.slice(at, end).map((line) => line.replace(QUOTE, "")), depth + 1)}</blockquote>`];
}

/** Items that begin alike; what is further in belongs to the item before it. */
function readList(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const ordered = /\d/.test(first[2]);
  const indent = first[1].length;
  const items = [];
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (item && item[1].length <= indent + 1 && /\d/.test(item[2]) === ordered) items.push([lines[end].slice(item[0].length)]);
    else if (!lines[end].trim()) {
      const next = lines[end + 1] || "";
      if (!(next.trim() && (/^\s{2,}/.test(next) || ITEM.test(next)))) break;
      items.at(-1).push("");
    } else if (item && item[1].length <= indent) break;
    else if (/^\s/.test(lines[end]) || items.at(-1).at(-1)) items.at(-1).push(lines[end].replace(new RegExp(`^\\s{0,${first[0].length}}`), ""));
    else break;
    end += 1;
  }
  const made = items.map((own) => {
    const task = /^\[([ xX])\]\s+/.exec(own[0]);
    if (task) own[0] = own[0].slice(task[0].length);
    const done = task && task[1] !== " ";
    return html`<li>${task ? html`<span aria-label=${done ? "done" : "open"}>${done ? "☑" : "☐"}</span> ` : null}${own.length === 1 ? inline(own[0]) : blocks(own, depth + 1)}</li>`;
  });
  return [end, ordered ? html`<ol start=${parseInt(first[2], 10)}>${made}</ol>` : html`<ul>${made}</ul>`];
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

function readTable(lines, at) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  const head = cells(lines[at]);
  return [
    end,
    html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table"><table>
      <thead><tr>${head.map((cell) => html`<th>${inline(cell)}</th>`)}</tr></thead>
      <tbody>${lines.slice(at + 2, end).map((line) => html`<tr>${cells(line).slice(0, head.length).map((cell) => html`<td>${inline(cell)}</td>`)}</tr>`)}</tbody>
    </table></div>`,
  ];
}

function readParagraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && ![FENCE, HEADING, RULE, QUOTE, ITEM].some((one) => one.test(lines[end]))) end += 1;
  const own = lines.slice(at, end);
  return [end, html`<p>${own.map((line, n) => [n ? html`<br />` : null, inline(line.trim())])}</p>`];
}

// -- inside a line ---

// Code, bold, italic, struck out, a link or picture, a bare address, an escaped sign; each ends on its own line.
const SPAN =
  /(`+)(.+?)\1(?!`)|\*\*(?=\S)(.+?)\*\*|__(?=\S)(.+?)__(?!\w)|\*(?=[^\s*])([^*]+?)\*(?!\*)|(?<!\w)_(?=[^\s_])([^_]+?)_(?!\w)|~~(?=\S)(.+?)~~|(!?)\[([^\][]*)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+"[^"]*")?\)|(https?:\/\/[^\s<>"')\]]+[^\s<>"')\].,;:!?])|\\([!-/:-@[-`{-~])/;

function inline(text, depth = 0) {
  const made = [];
  let rest = text;
  while (rest) {
    const found = depth < DEEPEST ? SPAN.exec(rest) : null;
    if (!found) {
      made.push(shown(rest));
      break;
    }
    if (found.index) made.push(shown(rest.slice(0, found.index)));
    made.push(span(found, depth + 1));
    rest = rest.slice(found.index + found[0].length);
  }
  return made;
}

function span(found, depth) {
  const [whole, , code, bold, alsoBold, italic, alsoItalic, struck, picture, words, to, bare, escaped] = found;
  if (code !== undefined) return html`<code>${shown(code.trim() || code)}</code>`;
  if (bold ?? alsoBold) return html`<strong>${inline(bold ?? alsoBold, depth)}</strong>`;
  if (italic ?? alsoItalic) return html`<em>${inline(italic ?? alsoItalic, depth)}</em>`;
  if (struck) return html`<s>${inline(struck, depth)}</s>`;
  if (escaped) return shown(escaped);
  if (bare) return link(bare, shown(bare));
  if (to !== undefined) return link(to, picture ? html`[picture: ${shown(words || to)}]` : inline(words || to, depth));
  return shown(whole);
}

const link = (to, words) =>
  /^(https?:\/\/|mailto:)/i.test(to) ? html`<a class="link" href=${to} target="_blank" rel="noopener noreferrer">${words}</a>` : html`<span class="dead-link" title=${shown(to)}>${words}</span>`;
