// Session documents (STD-001 and STD-008): who took part, what was to be done, what they told each other, what is wrong.
import { useRef, useState } from "preact/hooks";
import { address, sessionAddress, setParams, withParams } from "../address.js";
import { html, names } from "../html.js";
import { useKeys } from "../keys.js";
import { List } from "../list.js";
import { Agent, Icon } from "../marks.js";
import { ask } from "../server.js";
import { Loading, Problem, State, useAnswer } from "../states.js";
import { ago, count, duration, moment, plural, shown } from "../words.js";

const PAGE = 100;
const KINDS = [["", "All"], ["std-001", "One agent"], ["std-008", "Several agents"]];

export function Documents() {
  const { params } = address.value;
  const kind = params.get("kind") || "";
  const session = params.get("d") || "";
  const [head, problem, again] = useAnswer("documents", { kind, start: 0, count: 1 }, { key: kind });
  const [known, setKnown] = useState({ kind, rows: [] });
  const rows = known.kind === kind ? known.rows : [];
  const latest = useRef(kind);
  latest.current = kind;
  const load = async (start, n) => {
    const parts = [];
    for (let at = start; at < start + n && at < head.total; at += PAGE) parts.push(ask("documents", { kind, start: at, count: Math.min(PAGE, start + n - at) }));
    const found = (await Promise.all(parts)).flatMap((answer) => answer.documents);
    if (latest.current === kind) setKnown((before) => ({ kind, rows: Object.assign(before.kind === kind ? [...before.rows] : [], Object.fromEntries(found.map((row) => [row.n, row]))) }));
    return found;
  };
  const step = (by) => {
    const at = rows.findIndex((row) => row?.session === session);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    return next ? void setParams({ d: next.session }, { replace: true }) : false;
  };
  useKeys({ next: () => step(1), previous: () => step(-1), close: () => (session ? void setParams({ d: null }) : false) });
  return html`<main id="main" class=${names("documents", { reading: session })}>
    <h1 class="screen-reader">Documents</h1>
    <section class="document-list" aria-label="Documents">
      <header><h2 aria-hidden="true">Documents</h2><div class="segments" role="group" aria-label="Kind">${KINDS.map(([name, words]) => html`<button aria-pressed=${name === kind ? "true" : "false"} onClick=${() => setParams({ kind: name })}>${words}</button>`)}</div></header>
      ${problem
        ? html`<${Problem} problem=${problem} again=${again} />`
        : !head
          ? html`<${Loading} what="documents" />`
          : head.total
            ? html`<${List} source=${kind} total=${head.total} label="Documents, newest first" itemRole="listitem" estimate=${62} load=${load} row=${(row) => html`<${Entry} row=${row} chosen=${row.session === session} />`} />`
            : html`<${State} title="There are no session documents here"><p>A session document (STD-001, STD-008) is a JSON file that tells of a whole session. <code>harken import FILE.json</code> takes one in, <code>harken std export SESSION</code> makes one of any session.</p><//>`}
    </section>
    ${session ? html`<${Document} key=${session} session=${session} />` : head?.total ? html`<div class="document-none dim"><p>Choose a document, or press <kbd>j</kbd>.</p></div>` : null}
  </main>`;
}

const STATUS = { success: ["✓", "ok"], failed: ["✕", "alert"], in_progress: ["…", ""] };
const Status = ({ status }) => (status ? html`<span class=${"tag " + (STATUS[status]?.[1] ?? "")}>${STATUS[status]?.[0] ?? ""} ${shown(status.replaceAll("_", " "))}</span>` : null);
const Verdict = ({ verdict }) => (verdict ? html`<span class=${"tag " + (/reject|fail|change/i.test(verdict) ? "alert" : /approv|pass|accept/i.test(verdict) ? "ok" : "")}>${shown(verdict.replaceAll("_", " "))}</span>` : null);

function Entry({ row, chosen }) {
  return html`<a class=${names("document-entry", { chosen })} aria-current=${chosen ? "true" : null} href=${withParams({ d: row.session })}>
    <div class="row"><b class="cut grow">${shown(row.title) || shown(row.session)}</b><span class="dim xs">${ago(row.time)}</span></div>
    <div class="row xs dim">${row.problem ? html`<span class="alert cut">${shown(row.problem)}</span>` : html`<${Status} status=${row.status} /><${Verdict} verdict=${row.verdict} /><span class="cut">${plural(row.agents, "agent")} · ${plural(row.calls, "call")}${row.failed_calls ? html` · <span class="alert">${count(row.failed_calls)} failed</span>` : ""}</span><span class="grow"></span>${row.errors ? html`<span class="tag alert">${plural(row.errors, "error")}</span>` : row.warnings ? html`<span class="tag">${plural(row.warnings, "warning")}</span>` : html`<span class="added" title="As its standard has it">valid</span>`}`}</div>
  </a>`;
}

const ms = (value) => (value === null || value === undefined ? "" : duration(value / 1000));

function Document({ session }) {
  const [found, problem, again] = useAnswer("document", { session }, { key: session });
  const [agent, setAgent] = useState("");
  if (problem) return html`<section class="document"><${Problem} problem=${problem} again=${again} /></section>`;
  if (!found) return html`<section class="document"><${Loading} what="the document" /></section>`;
  const { shown: it, checked } = found;
  const order = new Map(it.agents.map((one, n) => [one.agent_id, n]));
  const about = (list, ...fields) => (agent ? list.filter((one) => fields.some((field) => one[field] === agent)) : list);
  return html`<article class="document scroll" tabindex="0" aria-label=${shown(it.title)}>
    <header>
      <a class="link back" href=${withParams({ d: null })}>All documents</a>
      <h2 class="document-title">${shown(it.title) || shown(session)}</h2>
      <p class="row wrap sm"><span class="tag">${it.kind.toUpperCase()} ${it.generation}</span><${Status} status=${it.status} /><${Verdict} verdict=${it.verdict} />${it.pattern ? html`<span class="tag">${shown(it.pattern)}</span>` : null}<span class="dim">${[moment(it.created_at), ms(it.duration_ms), it.model && shown(it.model), plural(it.calls, "call")].filter(Boolean).join(" · ")}${it.failed_calls ? html`, <span class="alert">${count(it.failed_calls)} failed</span>` : ""}</span></p>
      <div class="row wrap"><a class="button" href=${sessionAddress(session)}><${Icon} name="list" />Transcript</a><a class="button" href=${sessionAddress(session, { view: "flow" })}>Flow</a></div>
      ${it.prompt ? html`<blockquote class="document-prompt plain">${shown(it.prompt)}</blockquote>` : null}
      ${it.mended ? html`<p class="tag alert">The file is no JSON; it is shown as <code>harken std repair</code> would mend it</p>` : null}
    </header>
    <${Findings} checked=${checked} session=${session} />
    <section><h3>Agents <span class="dim">${count(it.agents.length)}</span></h3>
      <div class="scroll-x"><table class="document-table"><thead><tr><th>Agent</th><th>Role</th><th>Status</th><th class="number">Tasks</th><th class="number">Calls</th><th>Categories</th><th class="number">Time</th></tr></thead><tbody>
        ${it.agents.map((one, n) => html`<tr class=${names({ chosen: agent === one.agent_id })}><td><button onClick=${() => setAgent(agent === one.agent_id ? "" : one.agent_id)} aria-pressed=${agent === one.agent_id ? "true" : "false"}><${Agent} name=${one.agent_id} order=${n} /></button></td><td class="dim">${shown([one.role, one.agent_type].filter(Boolean).join(", "))}</td><td><${Status} status=${one.status} /></td><td class="number">${count(one.tasks)}</td><td class="number">${count(one.calls)}${one.failed ? html` <span class="alert">${count(one.failed)} failed</span>` : null}</td><td><${Categories} counts=${one.categories} /></td><td class="number">${ms(one.duration_ms)}</td></tr>`)}
      </tbody></table></div>
      ${agent ? html`<p class="sm dim">Only what ${shown(agent)} did, said and was told. <button class="link" onClick=${() => setAgent("")}>Everybody</button></p>` : null}
    </section>
    <${Tasks} tasks=${about(it.tasks, "agent_id", "given_by")} order=${order} />
    <${Messages} messages=${about(it.messages, "from_agent", "to_agent")} order=${order} />
    ${it.phases.length && !agent ? html`<section><h3>Phases <span class="dim">${count(it.phases.length)}</span></h3><ol class="phases">${it.phases.map((one) => html`<li><b>${shown(one.phase_type)}</b> <span class="id">${shown(one.first_call)} – ${shown(one.last_call)}</span> ${shown(one.description)}</li>`)}</ol></section>` : null}
    ${it.left_out.length ? html`<section><h3>Not drawn</h3><ul class="sm dim">${it.left_out.map((line) => html`<li>${shown(line)}</li>`)}</ul></section>` : null}
  </article>`;
}

const Categories = ({ counts }) => {
  const all = Object.entries(counts).filter(([, n]) => n);
  return html`<span class="dim xs">${all.map(([name, n]) => `${shown(name)} ${count(n)}`).join(", ")}</span>`;
};

const LEVELS = { error: "✕", warning: "!", note: "i" };

function Findings({ checked, session }) {
  const [all, setAll] = useState(false);
  if (!checked.findings.length) return html`<section class="findings"><p><span class="tag ok">✓ valid</span> <span class="dim sm">It is as ${checked.kind.toUpperCase()} has it.</span></p></section>`;
  const few = all ? checked.findings : checked.findings.slice(0, 5);
  const repairable = checked.findings.some((one) => one.repairable);
  return html`<section class="findings"><h3>${[checked.errors && plural(checked.errors, "error"), checked.warnings && plural(checked.warnings, "warning"), checked.notes && plural(checked.notes, "note")].filter(Boolean).join(", ")}</h3>
    <ul>${few.map((one) => html`<li class=${one.level}><span class="sign" role="img" aria-label=${one.level}>${LEVELS[one.level]}</span><span><span>${shown(one.message)}</span> <span class="id">${shown(one.path)}</span> <span class="dim xs">${shown(one.rule)}${one.repairable ? ", can be repaired" : ""}</span></span></li>`)}</ul>
    ${checked.findings.length > 5 ? html`<button class="link sm" onClick=${() => setAll(!all)}>${all ? "Fewer" : `All ${count(checked.findings.length)}`}</button>` : null}
    ${repairable ? html`<p class="dim sm"><code>harken std repair FILE</code> mends what can be mended${checked.file ? html`; the file was <code>${shown(checked.file)}</code>` : ""}.</p>` : null}
  </section>`;
}

function Tasks({ tasks, order }) {
  if (!tasks.length) return null;
  return html`<section><h3>Tasks <span class="dim">${count(tasks.length)}</span></h3>
    <ol class="tasks">${tasks.map((one) => html`<li>
      <div class="row"><${Agent} name=${one.agent_id} order=${order.get(one.agent_id)} /><b class="grow cut2">${shown(one.description)}</b>${one.priority ? html`<span class="tag">${shown(one.priority)}</span>` : null}${one.review ? html`<span class="tag accent">review</span>` : null}<${Verdict} verdict=${one.verdict} /><${Status} status=${one.status} /></div>
      ${one.outcome ? html`<p class="cut3">${shown(one.outcome)}</p>` : null}
      <p class="dim xs">${[one.task_id && shown(one.task_id), one.given_by && `given by ${shown(one.given_by)}`, plural(one.calls, "call"), ms(one.duration_ms)].filter(Boolean).join(" · ")}</p>
    </li>`)}</ol></section>`;
}

const MANY = 200;

function Messages({ messages, order }) {
  const [most, setMost] = useState(MANY);
  if (!messages.length) return null;
  return html`<section><h3>Messages <span class="dim">${count(messages.length)}, in order</span></h3>
    <ol class="messages">${messages.slice(0, most).map((one) => html`<li>
      <div class="row"><span class="number dim xs">${one.sequence_number ?? ""}</span><${Agent} name=${one.from_agent} order=${order.get(one.from_agent)} /><span class="dim" aria-label="to">→</span><${Agent} name=${one.to_agent} order=${order.get(one.to_agent)} /><span class="tag">${shown(one.message_type.replaceAll("_", " "))}</span><${Verdict} verdict=${one.verdict} /><span class="grow"></span><span class="dim xs" title=${shown(one.message_id)}>${moment(one.timestamp)}</span></div>
      ${one.said ? html`<p class="plain cut6">${shown(one.said)}</p>` : null}
    </li>`)}</ol>
    ${messages.length > most ? html`<button class="button" onClick=${() => setMost(most + MANY)}>${count(messages.length - most)} more</button>` : null}
  </section>`;
}
