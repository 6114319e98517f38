// Agents: who made whom, what each was told and gave back, what it did and what that cost.
import { useEffect, useMemo } from "preact/hooks";
import { address, sessionAddress, setParams } from "../address.js";
import { html, names } from "../html.js";
import { useKeys } from "../keys.js";
import { List } from "../list.js";
import { AgentMark, Icon, Strip } from "../marks.js";
import { askMany } from "../server.js";
import { Loading, Problem, State, useAnswer } from "../states.js";
import { clock, count, duration, few, modelName, money, plural, shown } from "../words.js";
import { orderOf } from "./agent_order.js";

const LAST = 6; // rows at the end of a transcript in which the last words of an agent are looked for
const LARGE = 20_000; // rows from which on the cards do not wait for what is counted record by record

const ROLES = { root: "began the session", child: "sub-agent", hook: "hook", outside: "outside" };

export function Agents({ page, version }) {
  const [lanes, problem, again] = useAnswer("lanes", { session: page.session, segments: 1 }, { key: page.session });
  const [listed, unlisted, againListed] = useAnswer("agents", { session: page.session }, { key: page.session, many: askMany });
  useEffect(() => void (version && (again(), againListed())), [version]);
  const cards = useMemo(() => (listed || lanes || problem ? treeOf(page, listed || [], lanes?.lanes || []) : null), [page, listed, lanes, problem]);
  if (problem && unlisted && !page.agents?.length) return html`<${Problem} problem=${unlisted} again=${() => (again(), againListed())} />`;
  // Either of the two is enough for cards; an export has one of them.
  if (!cards || !(listed || unlisted || (lanes && page.rows > LARGE))) return html`<${Loading} what="the agents" />`;
  if (!cards.length) return html`<${State} title="No agents are known here" actions=${html`<a class="button primary" href=${sessionAddress(page.session)}>Read the transcript</a>`}><p>Nothing in this session says who spoke in it.</p><//>`;
  return html`<${Cards} page=${page} cards=${cards} unseen=${lanes?.unseen_agents ? lanes : null} />`;
}

/** The agents from the root down, each with how deep it stands and whether another of the same parent follows. */
function treeOf(page, listed, lanes) {
  const found = new Map();
  const root = page.agents?.[0]?.id ?? listed[0]?.agent ?? "";
  for (const agent of page.agents || []) found.set(agent.id, { id: agent.id, name: agent.name, session: agent.session, calls: agent.calls, parent: agent.parent, call: agent.call_id });
  for (const agent of listed) {
    const before = found.get(agent.agent) || { id: agent.agent, call: null, calls: null };
    const name = agent.name || (agent.parent !== null && agent.title) || before.name;
    found.set(agent.agent, { ...before, name, session: agent.session || before.session, parent: agent.parent ?? before.parent, role: agent.role, model: agent.language_model, messages: agent.messages, ended: agent.terminated });
  }
  for (const lane of lanes) {
    const id = lane.agent === "" ? root : lane.agent;
    const before = found.get(id);
    if (before) found.set(id, { ...before, lane, model: lane.model && !lane.model.startsWith("<") ? lane.model : before.model });
  }
  const below = new Map();
  for (const one of found.values()) {
    const parent = one.parent !== null && one.parent !== one.id && found.has(one.parent) ? one.parent : one.id === root ? null : one.parent === null ? null : root;
    if (!below.has(parent)) below.set(parent, []);
    below.get(parent).push(one);
  }
  const began = (one) => one.lane?.told?.[0] ?? one.lane?.segments[0]?.[0] ?? Infinity;
  const cards = [];
  const walk = (parent, rails, seen) => {
    const own = (below.get(parent) || []).filter((one) => !seen.has(one.id)).sort((a, b) => began(a) - began(b) || 0);
    own.forEach((one, n) => {
      const last = n === own.length - 1;
      cards.push({ ...one, depth: rails.length, rails, last, children: (below.get(one.id) || []).length });
      walk(one.id, parent === null ? [...rails, true] : [...rails.slice(0, -1), !last, true], new Set([...seen, one.id]));
    });
  };
  walk(null, [], new Set());
  return cards;
}

function Cards({ page, cards, unseen }) {
  const chosen = address.value.params.get("a") || "";
  const order = orderOf(page, cards);
  const at = cards.findIndex((card) => card.id === chosen);
  const step = (by) => setParams({ a: cards[Math.max(0, Math.min(cards.length - 1, at < 0 ? 0 : at + by))].id }, { replace: true });
  useKeys({
    next: () => step(1), previous: () => step(-1), nextAgent: () => step(1), previousAgent: () => step(-1),
    first: () => setParams({ a: cards[0].id }, { replace: true }), last: () => setParams({ a: cards.at(-1).id }, { replace: true }),
    open: () => (cards[at]?.session ? void document.getElementById("agent-link-" + at)?.click() : false),
    close: () => (chosen ? void setParams({ a: null }, { replace: true }) : false),
  });
  useEffect(() => document.querySelector(".agent-card.chosen")?.scrollIntoView({ block: "nearest" }), [chosen]);
  const priced = cards.map((card) => card.lane?.price_usd_micros).concat(unseen?.unseen_price_usd_micros).filter((price) => price !== null && price !== undefined);
  const failed = cards.reduce((sum, card) => sum + (card.lane?.failed || 0), 0);
  const calls = cards.reduce((sum, card) => sum + (card.lane?.calls ?? card.calls ?? 0), 0);
  const hooks = cards.filter((card) => card.role === "hook").length;
  const deep = Math.max(...cards.map((card) => card.depth));
  return html`<div class="agents">
    <p class="agents-sum"><b>${plural(cards.length - hooks, "agent")}</b>${hooks ? html` and <b>${plural(hooks, "hook")}</b>` : ""}${deep ? html`, ${plural(deep + 1, "level")} deep` : ""}: <b>${plural(calls, "call")}</b>${failed ? html`, <b class="alert">${count(failed)} failed</b>` : ""}${priced.length ? html`, <b>${money(priced.reduce((a, b) => a + b, 0))}</b> at list price` : ""}.${unseen ? html` <b>${money(unseen.unseen_price_usd_micros)}</b> of it is of ${plural(unseen.unseen_agents, "agent")} of which only the usage is known.` : ""}${cards.length === 1 && !unseen ? html` One agent worked alone; <a class="link" href=${sessionAddress(page.session)}>the transcript</a> has all of it.` : ""}</p>
    <${List} source=${page.session} total=${cards.length} version=${cards} label="Agents" itemRole="listitem" class="agents-list" estimate=${150} load=${async (start, n) => cards.slice(start, start + n)}
      row=${(card, n) => html`<${Card} card=${card} n=${n} page=${page} order=${order} parent=${cards.find((one) => one.id === card.parent)} chosen=${card.id === chosen} />`} />
  </div>`;
}

function Card({ card, n, page, order, parent, chosen }) {
  const { lane } = card;
  const own = card.session && card.session !== page.session ? card.session : "";
  const asked = lane?.told;
  const above = parent?.session || (card.session === page.session && page.parent) || page.session;
  const [call] = useAnswer("transcript_row", { session: above, id: asked?.[1] || "", index: asked?.[2] || 0 }, { key: above + (asked?.[1] || "") + asked?.[2], skip: !asked });
  const [first] = useAnswer("transcript", { session: own || page.session, start: 0, count: 6 }, { key: own || page.session, skip: Boolean(asked) || (!own && Boolean(card.parent)) });
  const [outline] = useAnswer("transcript_outline", { session: own || page.session }, { key: own || page.session, skip: !own && Boolean(card.parent) });
  const [head] = useAnswer("session_page", { session: own }, { key: own, skip: !own });
  const told = call?.call ? toldBy(call.call, card) : firstWords(first, ["prompt", "instructions", "injected"]);
  const back = call?.call && !wentOn(lane) ? call.call.result : "";
  const tokens = (own ? head : page)?.figures?.tokens;
  const read = tokens && tokens.input !== null ? (tokens.input || 0) + (tokens.cache_read || 0) + (tokens.cache_write || 0) : null;
  const [last] = useAnswer("transcript", { session: own, start: Math.max(0, (head?.rows || 0) - LAST), count: LAST }, { key: own + (head?.rows || 0), skip: !own || !head || !wentOn(lane) });
  const took = timeOf(lane);
  const said = lastWords(last) || (call?.call && wentOn(lane) && last ? call.call.result : "");
  const link = sessionAddress(own || page.session);
  const name = card.name || card.id;
  const facts = [
    card.model && !card.model.startsWith("<") ? ["Model", shown(card.model.includes(":") ? card.model.split(":")[0] : modelName(card.model))] : null,
    ["Calls", html`${count(lane?.calls ?? card.calls ?? 0)}${lane?.failed ? html` <span class="alert">${count(lane.failed)} failed</span>` : ""}`],
    read !== null && read !== undefined ? [!own && card.children ? "Tokens, all agents" : "Tokens", `${few(read)} in, ${few(tokens.output || 0)} out`] : null,
    lane?.price_usd_micros !== null && lane?.price_usd_micros !== undefined ? ["Cost", money(lane.price_usd_micros)] : null,
    took ? ["Took", duration(took)] : null,
    card.messages !== undefined ? ["Messages", count(card.messages)] : null,
  ].filter(Boolean);
  return html`<div class="agent-row">
    ${card.rails.map((on, level) => html`<i class=${names("rail", { on: level < card.depth - 1 ? on : true, turn: level === card.depth - 1, end: level === card.depth - 1 && card.last })} aria-hidden="true"></i>`)}
    <article class=${names("agent-card", { chosen, hook: card.role === "hook" })} aria-label=${shown(name)} onClick=${(event) => event.target.closest("a,button,summary,details") || setParams({ a: chosen ? null : card.id }, { replace: true })}>
      <header><${AgentMark} name=${name} order=${order(card)} big /><div class="agent-title"><h2 class="cut" title=${shown(name)}>${shown(name)}</h2><p class="dim xs cut">${card.parent === null || !parent ? ROLES[card.role] || "agent" : `${ROLES[card.role] || "agent"} of ${shown(parent.name || parent.id)}`}${asked ? ` · ${clock(new Date(asked[0] / 1000).toISOString(), true)}` : ""}${card.ended ? " · ended" : ""}${card.children ? ` · made ${card.children}` : ""}</p></div>
        <span class="grow"></span>${outline?.strip ? html`<span class="agent-strip"><${Strip} letters=${outline.strip.slice(-160)} width=${160} /></span>` : null}
        <a class="button" id=${"agent-link-" + n} href=${link}>Transcript</a></header>
      <dl class="agent-facts">${facts.map(([word, value]) => html`<div><dt>${word}</dt><dd>${value}</dd></div>`)}</dl>
      ${told || back || said ? html`<div class="agent-words">
        ${told ? html`<${Words} title="Was told" icon="right" text=${told} />` : null}
        ${said ? html`<${Words} title="Said last" icon="up" text=${said} />` : null}
        ${back ? html`<${Words} title=${call.call.failed ? "Failed with" : "Gave back"} icon="up" text=${back} failed=${call.call.failed} />` : asked && call?.call && !call.call.answered ? html`<p class="dim sm">Nothing has come back yet.</p>` : null}
      </div>` : null}
      <p class="agent-links">${asked ? html`<a class="link" href=${sessionAddress(above, { record: asked[2] ? `${asked[1]}.${asked[2]}` : asked[1] })}>where it was asked for</a>` : null}<a class="link" href=${sessionAddress(page.session, { view: "lanes", agent: lane ? lane.agent : card.id })}>its lane</a>${(page.agents || []).length > 1 && card.role !== "hook" ? html`<a class="link" href=${sessionAddress(page.session, { view: "flow", agent: card.id })}>what it knew</a>` : null}</p>
    </article>
  </div>`;
}

/** What the call that made an agent told it. Calls that make several name each. */
function toldBy(call, card) {
  const given = call.input || {};
  for (const name of ["prompt", "system_prompt", "message", "task", "instructions", "description"]) if (typeof given[name] === "string" && given[name]) return given[name];
  return call.what || card.name;
}

/** Whether an agent was at work after its call had its result: it was launched in the background, or called again. What
 * that result says is not all that it gave back. */
const wentOn = (lane) => Boolean(lane?.background || (lane?.returned && lane.segments.length && lane.segments.at(-1)[1] > lane.returned[0]));

/** Seconds from when an agent was told until it was done, its pauses included. */
function timeOf(lane) {
  const began = lane?.told?.[0] ?? lane?.segments[0]?.[0];
  const ends = [lane?.returned?.[0], lane?.segments.at(-1)?.[1]].filter((time) => time !== undefined);
  return began === undefined || !ends.length ? null : (Math.max(...ends) - began) / 1e6;
}

const lastWords = (answer) => answer?.rows.findLast((row) => row.kind === "answer" && row.text)?.text || "";
const firstWords = (answer, kinds) => answer?.rows.find((row) => kinds.includes(row.kind) && row.text)?.text || "";

const Words = ({ title, icon, text, failed }) => html`<details class=${names("agent-said", { failed })}>
  <summary><${Icon} name=${icon} /><b>${title}</b><span class="cut2">${shown(text.trim().slice(0, 400))}</span></summary><div class="plain">${shown(text.slice(0, 20000))}</div>
</details>`;
