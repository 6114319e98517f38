// Flow: who said what to whom. A column for each agent, a row for each thing said, a wire to everybody who heard it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, sessionAddress, setParams } from "../address.js";
import { html } from "../html.js";
import { useKeys } from "../keys.js";
import { List } from "../list.js";
import { AgentMark, Icon } from "../marks.js";
import { ask } from "../server.js";
import { Loading, Problem, State, useAnswer, useLast } from "../states.js";
import { clock, count, modelName, plural, shown } from "../words.js";
import { Chooser } from "./chooser.js";
import { Moment, momentAt, momentBeside } from "./flow_moment.js";
import { FlowPanel } from "./flow_panel.js";
import { layOut, nobody, peopleOf, roomFor } from "./flow_people.js";
import { FlowHead, FlowRow } from "./flow_rows.js";
import { toInstant, toMicros } from "./instants.js";
import { splitName } from "./transcript.js";

const LEVELS = [["none", "Spoken"], ["some", "+ tools"], ["all", "All"]];
const NARROW = 760;

export function Flow({ page, version }) {
  if ((page.agents || []).length < 2) return html`<${Alone} page=${page} />`;
  return html`<${Several} page=${page} version=${version} />`;
}

function Alone({ page }) {
  const transcript = html`<a class="button primary" href=${sessionAddress(page.session)}>Read the transcript</a>`;
  if (page.parent) {
    const all = page.parent_stored && html`<a class="button" href=${sessionAddress(page.parent, { view: "flow", agent: page.agent || "" })}>Flow of the whole session</a>`;
    return html`<${State} title="One agent of several" actions=${html`${transcript}${all}`}><p>Flow shows who said what to whom. This is what one sub-agent did; what it was told and whom it told stands in the flow of the session that made it${page.parent_stored ? "" : ", which is not in the store"}.</p><//>`;
  }
  const lanes = html`<a class="button" href=${sessionAddress(page.session, { view: "lanes" })}>Lanes</a>`;
  return html`<${State} title="One agent, and nobody it spoke to" actions=${html`${transcript}${lanes}`}><p>Flow shows who said what to whom. In this session one agent worked alone with you, so the transcript has all of it.</p><//>`;
}

function Several({ page, version }) {
  const { params } = address.value;
  const tools = LEVELS.some(([name]) => name === params.get("tools")) ? params.get("tools") : "none";
  const [width, setWidth] = useState(0);
  const box = useRef(null);
  useEffect(() => {
    const measure = () => box.current && setWidth(box.current.clientWidth);
    measure();
    const resized = new ResizeObserver(measure);
    resized.observe(box.current);
    return () => resized.disconnect();
  }, []);
  const [head, problem, again] = useAnswer("flow_page", { session: page.session, start: 0, count: 1, tools }, { key: page.session });
  useEffect(() => void (version && again()), [version]);
  return html`<div class="flow-box" ref=${box}>${problem && !head ? html`<${Problem} problem=${problem} again=${again} />` : !head || !width ? html`<${Loading} what="who said what to whom" />${page.rows > 20000 ? html`<p class="dim sm flow-slow">All of a long session is read, the first time: a word may have gone anywhere.</p>` : null}` : html`<${Table} page=${page} head=${head} tools=${tools} width=${width} version=${version} />`}</div>`;
}

/** The columns that are shown: those the address names, else as many as there is room for. */
function chosenColumns(head, named, room) {
  if (named !== null) {
    const wanted = new Set(named.split(","));
    const found = head.columns.filter((column) => wanted.has(column.agent || "you"));
    if (found.length) return found;
  }
  if (head.columns.length <= room) return head.columns;
  const speaking = [...head.columns].sort((a, b) => (b.role === "outside") - (a.role === "outside") || (b.role === "root") - (a.role === "root") || b.knows - a.knows).slice(0, room);
  return head.columns.filter((column) => speaking.includes(column));
}

function Table({ page, head, tools, width, version }) {
  const { params } = address.value;
  const narrow = width <= NARROW;
  const panelWidth = narrow ? 0 : width <= 1180 ? 304 : 376;
  const columns = chosenColumns(head, params.get("cols"), narrow ? 12 : roomFor(width - panelWidth));
  const all = columns.length === head.columns.length;
  const agents = all ? [] : columns.map((column) => column.agent).filter(Boolean);
  const people = useMemo(() => peopleOf(page, head.columns), [page, head]);
  const layout = layOut(columns, width - panelWidth - (narrow ? 0 : 8), narrow);
  const agent = params.has("a") && people.has(params.get("a")) && params.get("a") ? params.get("a") : null;
  const at = params.get("t") || "";
  const micros = toMicros(at);
  const request = { session: page.session, tools, agents };
  const source = JSON.stringify(request);
  const [top] = useAnswer("flow_page", { ...request, start: 0, count: 1 }, { key: source + version, skip: all });
  const shownHead = all ? head : top;
  const slow = useLate(JSON.stringify([agent, at]), 120);
  const [, slowAt] = JSON.parse(slow);
  const [known] = useAnswer("flow_knows", { ...request, start: 0, count: 1, agent: agent || "", at: slowAt }, { key: (agent || "") + source, skip: !agent });
  const list = useRef(null);
  const [selected, setSelected] = useSelected(page, request, list, shownHead, version);
  const [view, setView] = useState([0, 0]);

  const load = async (start, n) => {
    const asked = [ask("flow_page", { ...request, start, count: n })];
    if (agent) asked.push(ask("flow_knows", { ...request, start, count: n, agent, at: slowAt }));
    const [{ rows }, knowing] = await Promise.all(asked);
    return rows.map((row, place) => ({ ...row, micros: toMicros(row.time), known: knowing?.rows[place] || null }));
  };
  const begin = useLast();
  const select = (row) => (begin(), setSelected(row), setParams({ e: row ? row.message_id : null, k: null }, { replace: true }));
  const choose = (id) => setParams({ a: id, e: null, k: null }, { replace: true });
  const setMoment = (time) => setParams({ t: time === null ? null : toInstant(time) }, { replace: true });
  const setColumns = (ids) => setParams({ cols: ids === null ? null : ids.map((id) => id || "you").join(",") }, { replace: true });
  const jump = async (n, near = false) => {
    list.current?.scrollTo(n, narrow ? { lead: 40 } : near ? { onlyIfHidden: true } : {});
    const isLast = begin();
    const row = list.current?.get(n) || (await load(n, 1))[0];
    if (row && isLast()) select(row);
  };
  const flow = { page, list, head, people, layout, columns, agent, at, moment: micros, known, select, choose, jump, modelOf };
  useFlowKeys({ flow, head: shownHead || head, columns, selected, view, jump, select, choose, setMoment });
  if (!shownHead) return html`<${Loading} what="rows" />`;
  const chooser = html`<${Columns} head=${head} people=${people} columns=${columns} setColumns=${setColumns} />`;
  return html`<div class=${"flow" + (narrow ? " narrow" : "")}>
    <div class="flow-tools">
      ${agent ? html`<button class="button flow-asked" title="Ask of all again" onClick=${() => setParams({ a: null, t: null }, { replace: true })}>What did <${AgentMark} name=${people.get(agent).name} order=${people.get(agent).order} /> <b class="cut">${shown(people.get(agent).name)}</b> know${at ? html` at <b>${clock(at, true)}</b>` : "?"}<${Icon} name="close" /></button>` : null}
      ${shownHead.moments.length > 1 ? html`<${Moment} moments=${shownHead.moments} people=${people} micros=${micros} setMoment=${setMoment} first=${shownHead.first} last=${shownHead.last} />` : html`<span class="grow"></span>`}
      <div class="segments" role="group" aria-label="What is shown">${LEVELS.map(([name, words]) => html`<button aria-pressed=${name === tools ? "true" : "false"} onClick=${() => setParams({ tools: name === "none" ? null : name }, { replace: true })}>${words}${name === "all" ? ` ${count(head.everything)}` : ""}</button>`)}</div>
    </div>
    <div class="flow-main">
      <${FlowHead} flow=${flow} chooser=${chooser} remove=${(id) => setColumns(columns.map((column) => column.agent).filter((one) => one !== id))} />
      ${all ? null : html`<p class="flow-note dim xs">${columns.length} of ${plural(head.columns.length, "column")}; what the others said among themselves is left out.</p>`}
      ${shownHead.total
        ? html`<${List} handle=${list} source=${source} total=${shownHead.total} version=${slow + version} follow=${page.running && !at && !selected} label="Who said what to whom" class="flow-list" tail=${narrow && (selected || agent) ? innerHeight * (selected ? 0.5 : 0.25) : 0} estimate=${narrow ? 74 : 58} load=${load} onView=${(first, last) => (first !== view[0] || last !== view[1]) && setView([first, last])}
            row=${(row, n) => html`<${FlowRow} row=${row} flow=${flow} selected=${selected?.n === row.n && selected.message_id === row.message_id} boundary=${Boolean(micros) && row.micros > micros && (n === 0 || (list.current?.get(n - 1)?.micros ?? Infinity) <= micros)} />`} />`
        : html`<${State} title="Nothing was said between these" actions=${html`<button class="button" onClick=${() => setColumns(null)}>Show others</button>`}><p>None of the chosen agents said or heard anything.</p><//>`}
      <${Legend} />
    </div>
    <${FlowPanel} page=${page} flow=${flow} selected=${selected} known=${known} head=${head} close=${() => (selected ? select(null) : choose(null))} />
  </div>`;
}

const modelOf = (column) => {
  const model = column.model.includes(":") || column.model.includes("/") ? column.model.split(/[:/]/)[0] : modelName(column.model);
  return model ? model + " · " : "";
};

/** A value some milliseconds after it last changed. */
function useLate(value, wait) {
  const [late, setLate] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLate(value), wait);
    return () => clearTimeout(timer);
  }, [value]);
  return late;
}

/** The row that the address names, brought into sight once. */
function useSelected(page, request, list, head, version) {
  const wanted = address.value.params.get("e") || "";
  const [selected, setSelected] = useState(null);
  const source = JSON.stringify(request);
  const done = useRef("");
  useEffect(() => {
    if (!wanted) return void (setSelected(null), (done.current = ""));
    if (!head || done.current === wanted + source) return undefined;
    done.current = wanted + source;
    if (selected?.message_id === wanted) return undefined;
    let stopped = false;
    (async () => {
      for (const message of new Set([wanted, ...splitName(wanted).map((place) => place.id)])) {
        try {
          const { n } = await ask("flow_place", { ...request, message });
          const { rows } = await ask("flow_page", { ...request, start: n, count: 1 });
          if (stopped || !rows.length) return;
          list.current?.scrollTo(n, innerWidth <= NARROW ? { lead: 40 } : {});
          setSelected({ ...rows[0], micros: toMicros(rows[0].time) });
          return;
        } catch (problem) {
          // A record that is none of what was said: nothing is selected here, and the address still names it.
          if (problem.code !== "not_found") return;
        }
      }
    })();
    return () => (stopped = true);
  }, [wanted, source, head === null, version]);
  return [selected, (row) => ((done.current = row ? row.message_id + source : ""), setSelected(row))];
}

function useFlowKeys({ flow, head, columns, selected, view, jump, select, choose, setMoment }) {
  const step = (by) => jump(Math.max(0, Math.min(head.total - 1, (selected ? selected.n : by > 0 ? view[0] - 1 : view[1] + 1) + by)), true);
  const agent = (by) => {
    const ids = columns.map((column) => column.agent).filter(Boolean);
    const at = ids.indexOf(flow.agent);
    choose(ids[Math.max(0, Math.min(ids.length - 1, at < 0 ? (by > 0 ? 0 : ids.length - 1) : at + by))]);
  };
  const moment = (by) => {
    if (!head.moments.length) return false;
    const next = momentBeside(head.moments, momentAt(head.moments, flow.moment), by);
    setMoment(next === head.moments.length - 1 ? null : head.moments[next][0]);
    flow.list.current?.scrollTo(head.moments[next][1], { onlyIfHidden: true });
    return true;
  };
  const among = (wanted, by) => {
    const all = head.moments.filter(wanted);
    const from = selected ? selected.n : by > 0 ? -1 : Infinity;
    const next = by > 0 ? all.find((one) => one[1] > from) : all.findLast((one) => one[1] < from);
    if (next) jump(next[1]);
    return all.length > 0;
  };
  useKeys({
    next: () => step(1), previous: () => step(-1), first: () => jump(0), last: () => jump(head.total - 1),
    nextAgent: () => agent(1), previousAgent: () => agent(-1), later: () => moment(1), earlier: () => moment(-1),
    nextPrompt: () => among((one) => !one[2], 1), previousPrompt: () => among((one) => !one[2], -1),
    nextError: () => among((one) => one[3], 1), previousError: () => among((one) => one[3], -1),
    fit: () => setParams({ a: null, t: null, cols: null }, { replace: true }),
    open: () => (selected ? void setParams({ v: null, cols: null, tools: null, k: null }) : false),
    close: () => (address.value.params.get("k") ? void setParams({ k: null }, { replace: true }) : selected ? void select(null) : flow.agent || flow.at ? void setParams({ a: null, t: null }, { replace: true }) : false),
  });
}

/** Agents to add and to remove. */
function Columns({ head, people, columns, setColumns }) {
  const shownIds = new Set(columns.map((column) => column.agent));
  const toggle = (id) => {
    const next = head.columns.map((column) => column.agent).filter((one) => (one === id ? !shownIds.has(one) : shownIds.has(one)));
    setColumns(next.length === head.columns.length ? null : next);
  };
  return html`<${Chooser} label="Columns" summary=${html`<summary class="link-like" title="Add or remove agents">+ agent</summary>`}>
      <button class="link sm" onClick=${() => setColumns(null)}>As many as fit</button>
      ${head.columns.map((column) => html`<label><input type="checkbox" checked=${shownIds.has(column.agent)} disabled=${shownIds.has(column.agent) && columns.length < 2} onChange=${() => toggle(column.agent)} /><${AgentMark} name=${people.get(column.agent).name} order=${people.get(column.agent).order} you=${!column.agent} /><span class="cut">${shown((people.get(column.agent) || nobody(column.agent)).name)}</span></label>`)}
    <//>`;
}

const Legend = () => html`<footer class="flow-legend" aria-label="What the lines mean">
  <span><i class="wire how-verbatim"></i>word for word</span><span><i class="wire how-named"></i>name added</span><span><i class="wire how-result"></i>in a tool result</span><span><i class="wire how-changed"></i>changed by a hook</span><span><i class="wire how-blocked"></i>blocked</span>
  <span class="grow"></span><span class="flow-keys"><kbd>j</kbd> <kbd>k</kbd> row <kbd>h</kbd> <kbd>l</kbd> agent <kbd>,</kbd> <kbd>.</kbd> moment</span>
</footer>`;
