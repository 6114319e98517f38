// Beside the flow: what was said and what was heard of it, who knows some words, where they came from; or what one agent
// knew at a moment; or, where nothing is chosen, what hooks did.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, exported, sessionAddress, setParams } from "../address.js";
import { WordDifference } from "../difference.js";
import { html, names } from "../html.js";
import { Icon, letters } from "../marks.js";
import { ask, askMany } from "../server.js";
import { Command, copyLink, useAnswer } from "../states.js";
import { brief, clock, count, duration, plural, shown } from "../words.js";
import { Person, colourClass, nobody, speakerOf } from "./flow_people.js";
import { hearersOf } from "./flow_rows.js";
import { toMicros } from "./instants.js";

const LARGE = 20_000; // rows from which on reading all of a session is not done unasked

export function FlowPanel({ page, flow, selected, known, head, close }) {
  const open = Boolean(selected || flow.agent);
  const [meddled] = useAnswer("view_interventions", { session: page.session }, { key: page.session, skip: !head.changed && !head.blocked, many: askMany });
  return html`<aside class=${names("flow-panel side", { open, short: open && !selected })} aria-label="Said and heard">
    ${open ? html`<button class="icon-button flow-close" aria-label="Close" onClick=${close}><${Icon} name="close" /></button>` : null}
    ${selected ? html`<${SaidAndHeard} key=${selected.message_id} page=${page} flow=${flow} row=${selected} all=${meddled || []} />` : flow.agent ? html`<${Knew} page=${page} flow=${flow} known=${known} />` : html`<${Overview} flow=${flow} head=${head} all=${meddled || []} />`}
  </aside>`;
}

const who = (flow, id) => flow.people.get(id ?? "") || nobody(id);
const named = (flow, ids) => ids.map((id) => shown(who(flow, id).name)).join(", ").replace(/, ([^,]*)$/, " and $1");

// -- said and heard ---

function SaidAndHeard({ page, flow, row, all }) {
  const hearers = hearersOf(row);
  const meddled = hearers.filter((one) => one.how === "changed" || one.how === "blocked");
  const changed = meddled.find((one) => one.how === "changed");
  const own = all.filter((one) => one.original === row.message_id);
  const [whole] = useAnswer("view_compare", { session: page.session, message: row.message_id }, { key: row.message_id, skip: row.kind !== "spoken" || (page.rows > LARGE && !changed) || !(row.cut || hearers.some((one) => one.how === "changed" || one.how === "named")), many: askMany });
  const words = address.value.params.get("k") || "";
  const removed = meddled.flatMap((one) => one.diff).filter(([op, text]) => op === "removed" && text.trim().length > 2).map(([, text]) => text.trim())[0];
  const box = useRef(null);
  const [picked, setPicked] = useState("");
  useEffect(() => {
    const look = () => {
      const selection = getSelection();
      const text = selection && !selection.isCollapsed && box.current?.contains(selection.anchorNode) ? String(selection).trim().slice(0, 200) : "";
      if (text) setPicked(text);
    };
    document.addEventListener("selectionchange", look);
    return () => document.removeEventListener("selectionchange", look);
  }, []);
  const asked = words || removed || "";
  const ending = hearers.find((one) => one.how !== "blocked");
  return html`<section ref=${box}>
      <h2>${row.kind === "spoken" ? "Said and heard" : row.kind === "injected" ? "Put in by a program" : row.kind === "made" ? "Made" : "Done"} ${changed ? html`<span class="tag alert">≠ ${plural(changed.words, "word")}</span>` : meddled.length ? html`<span class="tag alert">✕ blocked</span>` : null}</h2>
      <${Say} flow=${flow} agent=${row.speaker} by=${speakerOf(row, flow.people)} verb=${row.kind === "spoken" ? "said" : row.kind === "injected" ? "" : row.kind === "made" ? "made" : "did"} id=${row.message_id} time=${row.time}>${row.kind === "made" ? named(flow, row.made) : html`<${Told} key=${row.message_id} row=${row} compared=${whole?.[0]} page=${page} />`}<//>
      ${hearers.map((one) => html`<${Heard} key=${one.agent + one.message_id} one=${one} row=${row} flow=${flow} own=${own} compared=${whole?.find((each) => each.message_id === one.message_id)} />`)}
      ${row.kind === "spoken" && !hearers.length ? html`<p class="dim sm flow-tip">${who(flow, row.speaker).column?.role === "root" ? "Said to you; no other agent heard it." : "No other agent heard it."}</p>` : null}
      ${exported ? null : picked && picked !== words ? html`<button class="button" onClick=${() => (setParams({ k: picked }, { replace: true }), setPicked(""))}><${Icon} name="eye" />Who knows “<span class="cut">${brief(picked, 40)}</span>”?</button>` : !asked && row.kind === "spoken" ? html`<p class="dim xs flow-tip">Select words above to ask who knows them.</p>` : null}
    </section>
    ${asked && !exported ? html`<${WhoKnows} page=${page} flow=${flow} what=${asked} hearers=${hearers} />` : null}
    <${CameFrom} page=${page} flow=${flow} row=${row} />
    <section class="row flow-actions"><button class="button" onClick=${() => copyLink(location.href)}><${Icon} name="link" />Copy link <kbd>y</kbd></button>
      ${ending ? html`<button class="button" onClick=${() => setParams({ a: ending.agent, t: ending.time, e: null, k: null })}><${Icon} name="eye" />As <span class="cut">${brief(who(flow, ending.agent).name, 18)}</span> knew it</button>` : null}
      <a class="button quiet" href=${sessionAddress(sessionOf(page, row.speaker), { record: row.message_id })}>Transcript</a></section>`;
}

/** The session in which the agent's records stand. */
const sessionOf = (page, agent) => (page.agents || []).find((one) => one.id === agent)?.session || page.session;

function Told({ row, compared, page }) {
  const [more, setMore] = useState("");
  const text = compared?.said && compared.said.length > row.text.length ? compared.said : more || row.text;
  const rest = async () => setMore((await ask("transcript_row", { session: sessionOf(page, row.speaker), id: row.message_id })).text);
  return html`<span class="plain">${shown(text)}</span>${row.cut && text === row.text ? html` <button class="link sm" onClick=${rest}>${count(row.cut)} more characters</button>` : null}`;
}

const Say = ({ flow, agent, by = who(flow, agent), verb, id, time, children, quiet }) => html`<div class=${names("say", colourClass(by), { quiet })}>
  <div class="say-who"><${Person} who=${by} /><span class="dim">${verb}</span><span class="grow"></span><span class="id" title=${shown(id)}>${shown(id.slice(0, 8))}${time ? ` · ${clock(time, true)}` : ""}</span></div>
  <div class="say-words">${children}</div>
</div>`;

function Heard({ one, row, flow, own, compared }) {
  const about = own.find((each) => each.message_id === one.message_id || (each.kept_from || []).includes(one.agent)) || null;
  const name = who(flow, one.agent).name;
  if (one.how === "blocked") {
    return html`<div class="via how-blocked"><span>✕ ${one.hook ? html`hook <code>${shown(one.hook)}</code>` : "a hook"} kept it from ${shown(name)}${about?.reason ? html`: <q>${shown(about.reason)}</q>` : ""}</span></div>`;
  }
  if (one.how === "changed") {
    return html`<div class="via how-changed"><span>≠ ${one.hook ? html`hook <code>${shown(one.hook)}</code>` : "something on the way"} changed ${plural(one.words, "word")}</span></div>
      <${Say} flow=${flow} agent=${one.agent} verb="heard" id=${one.message_id} time=${one.time}>${compared?.label ? html`<span class="dim">${shown(compared.label)}</span>` : null}<${WordDifference} before=${compared?.said ?? row.text} after=${compared?.heard ?? one.heard} /><//>`;
  }
  const altered = about?.kind === "changed";
  return html`<div class=${names("via", "how-" + one.how)}><span><${Person} who=${who(flow, one.agent)} /> ${one.how === "result" ? "got it in a tool result" : one.how === "named" ? html`heard it with ${compared?.label ? html`<code>${shown(compared.label.trim())}</code>` : "the name"} before it` : "heard it word for word"}${altered ? html` <b class="alert">≠ with words changed${about.hook ? html` by <code>${shown(about.hook)}</code>` : ""}</b>` : null}<span class="dim"> ${clock(one.time, true)}</span></span></div>`;
}

// -- who knows it ---

const HOW = { said: "said it", made: "made it", heard: "heard it", received: "read it in a tool result", did: "used it in a call", told: "was told in its instructions", reminded: "has it in a summary" };
const MOST = 24; // agents that do not know it and are named

function WhoKnows({ page, flow, what, hearers }) {
  const [answers, problem] = useAnswer("view_who_knows", { session: page.session, what, ...(flow.at ? { at: flow.at } : {}) }, { key: what, many: askMany });
  const found = answers?.filter((one) => flow.people.has(one.agent_id));
  const knowing = (found || []).filter((one) => one.knows).sort((a, b) => toMicros(a.time) - toMicros(b.time));
  const others = (found || []).filter((one) => !one.knows);
  const why = (one) => {
    const heard = hearers.find((each) => each.agent === one.agent_id);
    if (one.knows === null) return "may have read it where nobody can read the record";
    return heard?.how === "changed" ? "heard the message, not these words" : heard?.how === "blocked" ? "it was kept from this one" : heard ? "got the message in other words" : "was never told";
  };
  return html`<section><h2><span class="know-words">Who knows “${brief(what, 80)}”?</span>${flow.at ? html` <span class="dim">at ${clock(flow.at, true)}</span>` : null}</h2>
    ${problem ? html`<p class="alert sm">${shown(problem.message)}</p>` : !found ? html`<p class="dim sm">Asking…</p>` : html`<ul class="know">
      ${knowing.map((one) => html`<li><button onClick=${() => setParams({ e: one.message_id, k: what }, { replace: true })}><${Person} who=${who(flow, one.agent_id)} /><span class="know-how">${HOW[one.how] || one.how}${one.changed ? " in other words" : ""}${one.forgotten ? ", and forgot it" : ""}</span><span class="dim">${clock(one.time, true)}</span></button></li>`)}
      ${others.slice(0, MOST).map((one) => html`<li class="not"><span><${Person} who=${who(flow, one.agent_id)} /><span class="know-how">${why(one)}</span><span class="dim">${one.knows === null ? "?" : "never"}</span></span></li>`)}
    </ul>${others.length > MOST ? html`<p class="dim xs">and ${plural(others.length - MOST, "other")} who do not</p>` : null}`}
  </section>`;
}

// -- where it came from ---

const STEPS = { action: "Asked for by", heard: "In answer to", said: "After", received: "After the result", thought: "After the thought", system: "By its instructions", created: "Since it was made", text: "From" };

function CameFrom({ page, flow, row }) {
  const [wanted, setWanted] = useState(page.rows <= LARGE);
  const [steps, problem] = useAnswer("trace", { session: page.session, message: row.message_id }, { key: row.message_id, skip: !wanted, many: askMany });
  if (!wanted) return html`<section><h2>Where it came from</h2><button class="button" onClick=${() => setWanted(true)}>Look it up</button><p class="dim xs flow-tip">All of this long session is read for that; it takes some seconds.</p></section>`;
  if (problem) return null;
  const inFlow = (one) => flow.people.has(one.agent_id ?? "");
  const before = (steps || []).filter((one) => one.step === "before" && inFlow(one)).slice(-4).reverse();
  const heard = new Set(row.hearers.map((one) => one.message_id));
  const after = (steps || []).filter((one) => one.step === "after" && inFlow(one) && !heard.has(one.message_id)).slice(0, 4);
  if (steps && !before.length && !after.length) return null;
  const line = (one, words) => html`<dt>${words}</dt><dd><button class="cut" title=${shown(one.content.slice(0, 400))} onClick=${() => setParams({ e: one.message_id, k: null }, { replace: true })}><span class="link">${brief(who(flow, one.agent_id).name, 24)}: ${shown((one.doing || one.content).slice(0, 80))}</span></button></dd>`;
  return html`<section><h2>Where it came from</h2>${steps ? html`<dl class="came">${before.map((one) => line(one, STEPS[one.kind] || "From"))}${after.map((one) => line(one, "Led to"))}</dl>` : html`<p class="dim sm">Asking…</p>`}</section>`;
}

// -- what an agent knew ---

const HOWS = { said: "said", verbatim: "heard", named: "heard", result: "read", changed: "heard ≠", blocked: "blocked" };

function Knew({ page, flow, known }) {
  const person = who(flow, flow.agent);
  const [all, setAll] = useState(false);
  const name = shown(person.name);
  if (!known) return html`<section><p class="dim sm">Asking what ${name} knew…</p></section>`;
  const end = toMicros(known.at) || 0;
  const before = (time) => (end && time ? `${duration((end - toMicros(time)) / 1e6)} before` : clock(time, true));
  const sum = Object.values(known.by).reduce((a, b) => a + b, 0) || 1;
  return html`<section class="knew"><h2 class="knew-title"><${Person} who=${person} big /><span>${flow.at ? `at ${clock(flow.at, true)}` : "at the end"}</span></h2>
      <p class="sm">knew <b>${plural(known.knew, "thing")}</b>: ${count(known.heard)} heard, ${count(known.said)} said. ${known.missed ? `${plural(known.missed, "thing")} had been said that did not come here` : "Nothing was said that did not come here"}${known.changed ? html`, and <b class="alert">${plural(known.changed, "message")} came changed</b>` : ""}.</p>
      <div class="knew-bar" aria-hidden="true">${Object.entries(known.by).map(([id, n]) => html`<i class=${colourClass(who(flow, id))} style=${{ width: `${(n / sum) * 100}%` }}></i>`)}</div>
      <p class="dim xs knew-by">${Object.entries(known.by).slice(0, 6).map(([id, n]) => html`<span>${brief(who(flow, id).name, 20)} ${n}</span>`)}<span class="grow"></span><span>about ${count(known.tokens)} tokens</span></p>
    </section>
    <section><h2>Newest that ${name} knew</h2><${Things} flow=${flow} things=${all ? known.newest : known.newest.slice(0, 5)} right=${(one) => `${HOWS[one.how] || one.how} · ${before(one.time)}`} />
      ${known.newest.length > 5 ? html`<button class="link sm" onClick=${() => setAll(!all)}>${all ? "fewer" : `${known.newest.length - 5} earlier`}</button>` : null}</section>
    ${known.unknown.length ? html`<section><h2>Did not know</h2><${Things} flow=${flow} dim things=${known.unknown.slice(0, 6)} right=${(one) => (one.how === "blocked" ? "✕ blocked" : one.told.length ? `told to ${named(flow, one.told.slice(0, 2))}` : clock(one.time, true))} />${known.missed > 6 ? html`<p class="dim xs">and ${count(known.missed - 6)} more</p>` : null}</section>` : null}
    <section class="knew-fork">${known.ref && !exported ? html`<p class="dim xs">Talk to ${name} as it was, in a branch that knows nothing of what came later:</p><${Command} text=${`harken fork ${known.ref} --name then`} />` : null}
      <a class="button" href=${sessionAddress(sessionOf(page, flow.agent))}>Its transcript</a></section>`;
}

const Things = ({ flow, things, right, dim }) => html`<ul class=${names("things", { dim })}>${things.map((one) => html`<li><button onClick=${() => setParams({ e: one.message_id }, { replace: true })}><span class=${"agent-mark " + colourClass(who(flow, one.speaker))} aria-hidden="true">${one.speaker ? letters(who(flow, one.speaker).name) : "Y"}</span><span class="cut2"><span class="screen-reader">${shown(who(flow, one.speaker).name)}: </span>${shown(one.text.slice(0, 200)) || "…"}</span><span class="dim xs">${right(one)}</span></button></li>`)}</ul>`;

// -- nothing chosen ---

function Overview({ flow, head, all }) {
  const seen = new Map();
  for (const one of all) if (!seen.has(one.original + one.kind)) seen.set(one.original + one.kind, one);
  return html`<section><h2>Who said what to whom</h2><p class="sm">${plural(head.spoken, "thing")} said among ${plural(head.columns.length, "speaker")}${head.changed || head.blocked ? html`; hooks <b class="alert">changed ${count(head.changed)} and blocked ${count(head.blocked)}</b> on the way` : ""}. Click words to see what was heard of them; click a name to see what that agent knew.</p></section>
    ${seen.size ? html`<section><h2>Not heard as it was said</h2><ul class="things">${[...seen.values()].slice(0, 30).map((one) => html`<li><button onClick=${() => setParams({ e: one.original }, { replace: true })}><b class="alert" aria-hidden="true">${one.kind === "changed" ? "≠" : "✕"}</b><span class="cut2">${shown(one.said.slice(0, 200))}</span><span class="dim xs">${one.kind}${one.hook ? html` by ${shown(one.hook)}` : ""}</span></button></li>`)}</ul></section>` : null}
    <section><h2>Who knew how much</h2><ul class="know">${head.columns.filter((column) => column.agent).slice(0, 40).map((column) => html`<li><button onClick=${() => flow.choose(column.agent)}><${Person} who=${who(flow, column.agent)} /><span class="know-how"></span><span class="dim">${plural(column.knows, "thing")}</span></button></li>`)}</ul></section>`;
}
