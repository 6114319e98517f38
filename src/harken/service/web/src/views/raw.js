// The records as the runtime wrote them, commit by commit: nothing is read into them here.
import { useEffect, useRef, useState } from "preact/hooks";
import { commitAddress } from "../address.js";
import { html } from "../html.js";
import { useKeys } from "../keys.js";
import { List } from "../list.js";
import { ask } from "../server.js";
import { Loading, Problem, State, useAnswer } from "../states.js";
import { bytes, count, moment, plural, shown } from "../words.js";

const SHORT = 400;
const opened = new Set();

export function Raw({ page, version }) {
  const [head, problem, again] = useAnswer("raw_records", { session: page.session, start: 0, count: 1 }, { key: page.session });
  useEffect(() => void (version && again()), [version]);
  const list = useRef(null);
  const [at, setAt] = useState(0);
  const move = (by) => {
    const n = Math.max(0, Math.min((head?.total || 1) - 1, at + by));
    setAt(n);
    list.current?.scrollTo(n, { onlyIfHidden: true });
  };
  useKeys({ next: () => move(1), previous: () => move(-1), first: () => move(-1e9), last: () => move(1e9), open: () => document.querySelector(`.raw [data-n="${at}"] .raw-head`)?.click() });
  if (problem && !head) return html`<${Problem} problem=${problem} again=${again} />`;
  if (!head) return html`<${Loading} what="the records" />`;
  if (!head.total) return html`<${State} title="Nothing was kept here yet"><p>The session is known, and has no commit.</p><//>`;
  return html`<div class="raw">
    <p class="dim sm pad">As they were taken in, byte for byte: ${bytes(head.bytes)} in ${plural(head.commits, "commit")}. <code>harken materialize ${shown(page.short)} --stop root -o FILE</code> writes them.</p>
    <${List} handle=${list} source=${page.session} total=${head.total} version=${version} label="Records" estimate=${74} itemRole="listitem"
      load=${(start, n) => ask("raw_records", { session: page.session, start, count: n }).then((answer) => answer.records)}
      row=${(record) => html`<${Record} record=${record} chosen=${record.n === at} />`} />
  </div>`;
}

function Record({ record, chosen }) {
  const name = record.commit_id + record.start;
  const [open, setOpen] = useState(opened.has(name));
  const turn = () => {
    if (open) opened.delete(name);
    else opened.add(name);
    setOpen(!open);
  };
  const text = open ? pretty(record.text) : record.text.slice(0, SHORT);
  return html`<div class=${"raw-record" + (chosen ? " chosen" : "")}>
    <div class="raw-line"><button class="raw-head" aria-expanded=${open ? "true" : "false"} onClick=${turn}><span class="dim xs number">${count(record.n + 1)}</span><span class="xs">${moment(record.time)}</span><span class="dim xs">${record.start ? `from byte ${count(record.start)} of ${count(record.bytes)}` : bytes(record.bytes)}</span></button><a class="id" href=${commitAddress(record.commit)}>${record.commit}</a></div>
    ${record.problem ? html`<p class="alert sm">${shown(record.problem)}</p>` : html`<pre>${shown(text)}${!open && record.text.length > SHORT ? "…" : ""}</pre>`}
  </div>`;
}

/** Lines of JSON with their structure; whatever is none stays as it is. */
function pretty(text) {
  return text
    .split("\n")
    .map((line) => {
      try {
        const value = JSON.parse(line);
        return value && typeof value === "object" ? JSON.stringify(value, null, 2) : line;
      } catch {
        return line;
      }
    })
    .join("\n");
}
