// Continue from here: every runtime that can, with how much of the conversation it would be given, before one chooses.
import { useState } from "preact/hooks";
import { Dialog } from "../dialog.js";
import { html, names } from "../html.js";
import { Icon, RuntimeMark } from "../marks.js";
import { ask, askMany, may } from "../server.js";
import { Command, Loading, Problem, Refused, useAnswer } from "../states.js";
import { count, few, pathEnd, plural, shown } from "../words.js";
import { Change } from "./commit-panel.js";

const FIDELITIES = { exact: ["exact", "ok"], translated: ["translated", ""], text: ["as text", ""], no: ["cannot", "alert"] };

/** A session (`page`), at one of its records where one is selected, or a commit (`at`). */
export function Continue({ page = null, record = "", at = "", close }) {
  const [whole, setWhole] = useState(false);
  const message = record.replace(/\.\d{1,6}$/, "");
  const ref = at || (record && !whole ? `${page.session}@${message}` : page.session);
  return html`<${Dialog} label="Continue from here" close=${close} class="continue">
    <header><div class="row"><h2 class="grow">Continue from ${at ? html`<span class="id">${shown(at)}</span>` : record && !whole ? "the selected record" : "the end of this session"}</h2><button class="icon-button" aria-label="Close" onClick=${close}><${Icon} name="close" /></button></div>
      <p class="dim sm">A new session is written in the runtime's own place. What is continued stays as it is.</p>
      ${record && !at ? html`<div class="segments" role="group" aria-label="From where"><button aria-pressed=${whole ? "false" : "true"} onClick=${() => setWhole(false)}>From the selected record</button><button aria-pressed=${whole ? "true" : "false"} onClick=${() => setWhole(true)}>From the end</button></div>` : null}
    </header>
    <div class="continue-body"><${Fidelities} key=${ref} commit=${ref} folder=${page?.project || ""} start /></div>
  <//>`;
}

/** The choice itself; with `start` also what writes it, and the way to only fork. */
export function Fidelities({ commit, folder = "", start = false }) {
  const [found, problem, again] = useAnswer("fidelity", { ref: commit }, { key: commit, many: askMany });
  const [picked, setPicked] = useState("");
  const [forking, setForking] = useState(false);
  if (problem) return html`<${Problem} problem=${problem} again=${again} />`;
  if (!found) return html`<${Loading} what="what each runtime can take" />`;
  if (!found.length) return html`<p class="dim">No runtime that is installed here can continue a conversation.</p>`;
  const chosen = found.find((one) => one.runtime === picked) || found.find((one) => one.fidelity !== "no");
  return html`<div class="fidelities" role="radiogroup" aria-label="Continue in">
      ${found.map((one) => html`<${Choice} one=${one} picked=${one === chosen} pick=${() => setPicked(one.runtime)} />`)}
    </div>
    ${chosen
      ? html`<${Command} text=${`harken resume ${chosen.short} --in ${chosen.runtime}`} />
          ${start ? html`<${Start} key=${chosen.runtime + chosen.commit} one=${chosen} folder=${folder} onFork=${() => setForking(!forking)} forking=${forking} />` : null}`
      : html`<p class="alert sm">None of them can go on with this; <code>harken materialize</code> gives it in any format that can say it.</p>`}
    ${start && forking ? html`<${Change} what="fork" row=${{ short: found[0].short, ids: [found[0].commit] }} />` : null}`;
}

function Choice({ one, picked, pick }) {
  const [words, kind] = FIDELITIES[one.fidelity] || FIDELITIES.no;
  const lost = one.losses.map((loss) => `${count(loss.count)} × ${shown(loss.what)} left out: ${shown(loss.why)}`);
  const size = one.messages != null ? `${plural(one.messages, "message")}${one.tokens != null ? `, ${one.approximate ? "about " : ""}${few(one.tokens)} tokens` : ""}` : "";
  return html`<label class=${names("runtime-choice", { picked, cannot: one.fidelity === "no" })}>
    <input type="radio" name="runtime" checked=${picked} disabled=${one.fidelity === "no"} onChange=${pick} />
    <span class="grow"><${RuntimeMark} runtime=${one.runtime} /></span><span class=${"tag " + kind}>${words}</span>
    ${one.problem || size || lost.length
      ? html`<span class="choice-note">${one.problem ? shown(one.problem) : size}${lost.length ? html`<ul>${lost.slice(0, 6).map((line) => html`<li>${line}</li>`)}${lost.length > 6 ? html`<li>and ${lost.length - 6} more</li>` : null}</ul>` : null}</span>`
      : null}
  </label>`;
}

/** Writing it needs a token that may do everything; where it may not, the command above does the same. */
function Start({ one, folder, onFork, forking }) {
  const [place, setPlace] = useState(folder);
  const [state, setState] = useState({ busy: false, done: null, problem: null });
  const write = async () => {
    setState({ busy: true, done: null, problem: null });
    try {
      setState({ busy: false, problem: null, done: await ask("resume", { ref: one.commit, runtime: one.runtime, cwd: place }) });
    } catch (problem) {
      setState({ busy: false, done: null, problem });
    }
  };
  if (state.done) return html`<${Written} done=${state.done} label=${one.label} />`;
  return html`<label class="sm continue-folder">It is going to work in<div class="field"><input value=${place} placeholder="/home/you/project" onInput=${(event) => setPlace(event.target.value)} /></div></label>
    <div class="row wrap"><button class="button primary" disabled=${state.busy || !place || !may("admin")} onClick=${write}><${Icon} name="play" />Write it for ${shown(one.label)}</button><button class="button" disabled=${!may("context/write")} aria-expanded=${forking ? "true" : "false"} onClick=${onFork}><${Icon} name="fork" />Only fork</button></div>
    <${Refused} grant="admin">The command above does the same in a terminal.<//>
    ${state.problem ? html`<p class="alert sm" role="alert">${shown(state.problem.message)}${state.problem.hint ? html` <span class="dim">${shown(state.problem.hint)}</span>` : null}</p>` : null}`;
}

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`);

/** The commands as one would type them. */
export function spelled(done) {
  const setting = Object.entries(done.environment).map(([name, value]) => `${name}=${quoted(value)} `).join("");
  return `cd ${quoted(done.cwd)} && ` + [...done.prepare, done.command].map((words) => setting + words.map(quoted).join(" ")).join(" && ");
}

const Written = ({ done, label }) =>
  html`<div class="written" role="status"><p><b>It is written.</b> <span class="dim">${shown(label)} goes on with it in ${shown(pathEnd(done.cwd, 2))}:</span></p><${Command} text=${spelled(done)} /><p class="dim sm cut" title=${shown(done.path)}>Written to ${shown(done.path)}</p></div>`;
