// Beside the commits: two of them compared, what a compaction dropped, or the one that is chosen and what to do with it.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { commitAddress, sessionAddress, setParams } from "../address.js";
import { html } from "../html.js";
import { Icon } from "../marks.js";
import { ask, askMany, may } from "../server.js";
import { Loading, Problem, Refused, copyText, useAnswer } from "../states.js";
import { count, few, moment, plural, runtimeName, shown } from "../words.js";
import { Dropped } from "./compaction.js";
import { Fidelities } from "./continue.js";

export function CommitPanel({ row, rowOf, marks, dropped, onContinue, onMark, changed, close }) {
  const inside = dropped
    ? html`<${Dropped} key=${dropped} commit=${dropped} row=${rowOf(dropped)} />`
    : marks.A && marks.B
      ? html`<${Compare} marks=${marks} rowOf=${rowOf} />`
      : row
        ? html`<${Chosen} key=${row.short} row=${row} marks=${marks} onContinue=${onContinue} onMark=${onMark} changed=${changed} />`
        : html`<${Half} marks=${marks} rowOf=${rowOf} />`;
  return html`<aside class="side commit-panel" aria-label=${dropped ? "What the compaction dropped" : marks.A && marks.B ? "Compare" : "This commit"}>
    <button class="icon-button panel-close" aria-label="Close" onClick=${close}><${Icon} name="close" /></button>
    ${inside}
  </aside>`;
}

const Half = ({ marks, rowOf }) => {
  const letter = marks.A ? "A" : "B";
  const other = marks.A ? "B" : "A";
  return html`<section><h2>Compare</h2><${Marked} letter=${letter} short=${marks[letter]} row=${rowOf(marks[letter])} /><p class="dim sm">Choose another commit and press <kbd>${other.toLowerCase()}</kbd>.</p></section>`;
};

const Marked = ({ letter, short, row }) =>
  html`<div class="marked"><b class=${"commit-mark " + letter}>${letter}</b><span class="cut">${row ? (row.names[0] ? shown(row.names[0]) + " · " : "") + shown(row.kind === "compaction" ? "Compaction" : row.text) : ""}</span><a class="id" href=${commitAddress(short)}>${short}</a></div>`;

// -- two compared ---

const FIRST = 8;

function Compare({ marks, rowOf }) {
  const request = { a: marks.A, b: marks.B, limit: 200, brief: true };
  const [found, problem, again] = useAnswer("diff", request, { key: marks.A + marks.B, many: askMany });
  const swap = () => setParams({ A: marks.B, B: marks.A }, { replace: true });
  const head = html`<h2>Compare <button class="button quiet" onClick=${swap}>Swap</button></h2><${Marked} letter="A" short=${marks.A} row=${rowOf(marks.A)} /><${Marked} letter="B" short=${marks.B} row=${rowOf(marks.B)} />`;
  if (problem) return html`<section>${head}</section><${Problem} problem=${problem} again=${again} />`;
  if (!found) return html`<section>${head}</section><${Loading} what="the comparison" />`;
  const [start, ...lines] = found;
  const only = { here: lines.filter((one) => one.side === "here"), there: lines.filter((one) => one.side === "there") };
  const ancestor = start.ancestor && rowOf(start.ancestor);
  return html`<section>${head}
      <div class="shares" role="img" aria-label=${`Only A knows ${start.here}, only B knows ${start.there}, ${start.common ?? "an unknown number of"} messages in common`}>
        <b class="A" style=${{ flexGrow: Math.min(start.here, 400) }}>${count(start.here)}</b><span style=${{ flexGrow: Math.max(8, Math.min(start.common || 0, 600)) }}>${start.common ? `${count(start.common)} in common` : start.ancestor ? "the rest in common" : "0 in common"}</span><b class="B" style=${{ flexGrow: Math.min(start.there, 400) }}>${count(start.there)}</b>
      </div>
      <p class="dim sm">${start.ancestor ? html`parted at <a class="link id" href=${commitAddress(start.ancestor_short)}>${start.ancestor_short}</a>${ancestor?.time ? `, ${moment(ancestor.time)}` : ""}` : "They have no commit in common."}${start.unread ? ` · ${plural(start.unread, "commit")} cannot be read here` : ""}</p>
    </section>
    <${Side} title="Only A knows" sign="+" lines=${only.here} total=${start.here} letter="A" row=${rowOf(marks.A)} />
    <${Side} title="Only B knows" sign="−" lines=${only.there} total=${start.there} letter="B" row=${rowOf(marks.B)} />
    <section><h2>Continue from <b class="commit-mark A">A</b> in</h2><${Fidelities} commit=${marks.A} /></section>`;
}

function Side({ title, sign, lines, total, letter, row }) {
  const [all, setAll] = useState(false);
  return html`<section><h2>${title} <span class="dim">${count(total)}</span></h2>
    ${lines.length
      ? html`<ul class="only">${(all ? lines : lines.slice(0, FIRST)).map((one) => html`<li><span class=${"sign " + letter} aria-hidden="true">${sign}</span><${Said} one=${one} session=${row?.session} /></li>`)}</ul>
          ${lines.length > FIRST ? html`<button class="link sm" onClick=${() => setAll(!all)}>${all ? "Fewer" : `All ${count(Math.min(total, lines.length))}${total > lines.length ? ` of ${count(total)}` : ""}`}</button>` : null}`
      : html`<p class="dim sm">Nothing that ${letter === "A" ? "B" : "A"} does not know, too.</p>`}
  </section>`;
}

const ASIDE = new Set(["output", "metric", "agent_created", "agent_terminated"]);
const WHO = { user: "you", assistant: "answer", injected: "injected", thinking: "thought", system: "notice", result: "result" };

/** An event on one line: what it says, and at its end what it is. The line begins with that word. */
function Said({ one, session }) {
  const [, word, rest] = /^\s*(\S+)\s*([^]*)$/.exec(one.line) || [, "", one.line];
  const [, tool, input] = (word === "call" && /^([^:\s]+): ([^]*)$/.exec(rest)) || [];
  const text = shown(tool ? input : rest) || "(no words)";
  return html`${session && one.event.message_id ? html`<a class="cut2 grow" href=${sessionAddress(session, { record: one.event.message_id })}>${text}</a>` : html`<span class="cut2 grow">${text}</span>`}<span class="id">${shown(tool || WHO[word] || word)}</span>`;
}

// -- one that is chosen ---

function Chosen({ row, marks, onContinue, onMark, changed }) {
  const [doing, setDoing] = useState("");
  const title = row.kind === "compaction" ? "Compaction" : row.kind === "folded" ? plural(row.commits, "commit") + ", folded" : shown(row.text) || row.short;
  const facts = [
    ["Commit", html`<button class="link id" onClick=${() => copyText(row.short)} title="Copy">${row.short}</button>`],
    row.session && ["Session", html`<a class="link id cut" href=${sessionAddress(row.session)}>${shown(row.session)}</a>`],
    ["Runtime", runtimeName(row.runtime)],
    row.spawned && ["Agent", shown(row.agent)],
    row.time && ["When", moment(row.time)],
    row.held != null && ["Tokens held", count(row.held) + (row.held_here ? "" : ", as last counted")],
    row.messages != null && ["Messages", count(row.messages)],
    row.calls && ["Calls", count(row.calls) + (row.failed ? `, ${count(row.failed)} failed` : "")],
    row.names.length && ["Names", row.names.map(shown).join(", ")],
  ].filter(Boolean);
  return html`<section><h2 class="cut3">${title}</h2><dl class="pairs">${facts.map(([name, value]) => html`<dt>${name}</dt><dd class="cut">${value}</dd>`)}</dl>
      <div class="row wrap">
        <button class="button primary" onClick=${() => onContinue(row.short)}><${Icon} name="play" />Continue</button>
        <button class="button" disabled=${!may("context/write")} aria-expanded=${doing === "fork" ? "true" : "false"} onClick=${() => setDoing(doing === "fork" ? "" : "fork")}><${Icon} name="fork" />Fork</button>
        <button class="button" disabled=${!may("context/write")} aria-expanded=${doing === "annotate" ? "true" : "false"} onClick=${() => setDoing(doing === "annotate" ? "" : "annotate")}><${Icon} name="edit" />Annotate</button>
      </div>
      <${Refused} grant="context/write">Forking and annotating need the grant to write.<//>
      ${doing ? html`<${Change} key=${doing} what=${doing} row=${row} changed=${changed} done=${() => setDoing("")} />` : null}
      <div class="row wrap"><button class="button quiet" aria-pressed=${marks.A === row.short ? "true" : "false"} onClick=${() => onMark("A")}><b class="commit-mark A">A</b>Mark as A</button><button class="button quiet" aria-pressed=${marks.B === row.short ? "true" : "false"} onClick=${() => onMark("B")}><b class="commit-mark B">B</b>Mark as B</button></div>
      ${row.kind === "compaction" ? html`<button class="link sm" onClick=${() => setParams({ drop: row.short }, { replace: true })}>What it dropped</button>` : null}
    </section>
    <${Adds} row=${row} />`;
}

/** Start a branch, or say something about a commit. */
export function Change({ what, row, changed, done }) {
  const [text, setText] = useState("");
  const [state, setState] = useState({ problem: null, said: "", busy: false });
  const fork = what === "fork";
  const field = useRef(null);
  useLayoutEffect(() => field.current.focus(), []); // once: whoever has gone on is not called back by news
  const submit = async (event) => {
    event.preventDefault();
    if (!text.trim() || state.busy) return;
    setState({ problem: null, said: "", busy: true });
    try {
      if (fork) await ask("fork", { ref: row.ids?.[0] || row.short, name: text.trim() });
      else await ask("annotate", { ref: row.ids?.[0] || row.short, text: text.trim() });
      setState({ problem: null, said: fork ? `The branch ${text.trim()} begins here.` : "Said.", busy: false });
      setText("");
      changed?.();
      if (!fork) done?.();
    } catch (problem) {
      setState({ problem, said: "", busy: false });
    }
  };
  return html`<form class="change" onSubmit=${submit}>
    <label class="sm">${fork ? "What the branch is called" : "What is to be said of this commit"}<div class="field"><input autofocus ref=${field} value=${text} maxlength="500" placeholder=${fork ? "try-another-way" : "the last point at which the tests passed"} onInput=${(event) => setText(event.target.value)} /></div></label>
    <div class="row"><button class="button primary" disabled=${state.busy || !text.trim()}>${fork ? "Fork here" : "Say it"}</button></div>
    ${state.problem ? html`<p class="alert sm" role="alert">${shown(state.problem.message)}${state.problem.hint ? ` (${shown(state.problem.hint)})` : ""}</p>` : null}
    ${state.said ? html`<p class="sm added" role="status">${shown(state.said)}</p>` : null}
  </form>`;
}

/** What the commit adds to the conversation; of a folded run, its newest. */
function Adds({ row }) {
  const [found, problem] = useAnswer("show", { ref: row.ids[0], content: true }, { key: row.ids[0] });
  if (problem) return html`<section><p class="dim sm">${shown(problem.message)}</p></section>`;
  if (!found) return html`<${Loading} what="the commit" />`;
  const lines = found.content.filter((one) => one.line.trim() && !ASIDE.has(one.event.type));
  return html`<section><h2>${row.kind === "folded" ? "The newest of them adds" : "It adds"} <span class="dim">${count(lines.length)}</span></h2>
    ${found.unread ? html`<p class="alert sm">${shown(found.unread)}</p>` : null}
    <ul class="only">${lines.slice(0, 12).map((one) => html`<li><${Said} one=${one} session=${row.session} /></li>`)}</ul>
    ${lines.length > 12 ? html`<p class="dim sm">and ${count(lines.length - 12)} more</p>` : null}
    ${found.token_count != null ? html`<p class="dim sm">${found.approximate ? "about " : ""}${few(found.token_count)} tokens</p>` : null}
    ${found.forgotten ? html`<p class="dim sm">${shown(found.forgotten)}</p>` : null}
  </section>`;
}
