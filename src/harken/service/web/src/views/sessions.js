// The list of sessions: filters beside it, words in it, and the chosen one at a glance.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, go, sessionAddress, setParams, withParams } from "../address.js";
import { html, names } from "../html.js";
import { useKeys } from "../keys.js";
import { List } from "../list.js";
import { Icon, RuntimeMark } from "../marks.js";
import { ask } from "../server.js";
import { useTyped } from "../typing.js";
import { Loading, Problem, State, useAnswer, useLast } from "../states.js";
import { ago, clock, count, day, moment, money, pathEnd, plural, runtimeName, shortWeekday, shown, timeOf } from "../words.js";
import { EmptyStore } from "./empty.js";
import { OwnStrip, nameAmong, priceOf, useChanges, useTicks, useWide } from "./pieces.js";
import { Preview } from "./preview.js";
import { ROLES, Spots } from "./spots.js";
import { DAY, WINDOWS, sinceOf, untilOf, windowName } from "./windows.js";

const PAGE = 200;
const WAIT = 180;
const ROW = 57;
const PLACE = 22;
const HAS = { errors: ["✕", "failures"], compaction: ["◆", "compaction"], agents: ["", "sub-agents"], prompt: ["▼", "prompts of yours"] };
const ORDERS = [["newest", "Newest"], ["best", "Best match"], ["cost", "Cost"]];

/** The words as they are searched for: the last is a beginning, since somebody may still be typing it. */
const begun = (words) => (/(^|\s)[\p{L}\p{N}_]{3,}$/u.test(words) && !/["]|\b(AND|OR|NOT)$/.test(words) ? words + "*" : words);

/** What the address asks for. */
function asked(params) {
  const has = (params.get("has") || "").split(",").filter((one) => one in HAS);
  const order = ORDERS.some(([name]) => name === params.get("order")) ? params.get("order") : "newest";
  return {
    query: begun(params.get("q") || ""),
    project: params.get("project") || "",
    runtime: params.get("runtime") || "",
    since: sinceOf(params.get("since")),
    until: untilOf(params.get("until")),
    running: params.get("running") === "1",
    has,
    order: order === "best" && !params.get("q") ? "newest" : order,
  };
}

const isFiltered = (wanted) => Boolean(wanted.query || wanted.project || wanted.runtime || wanted.since || wanted.until || wanted.running || wanted.has.length);
const remembering = (operation, request, options) => ask(operation, request, options).then((answer) => ({ ...answer, asked: request }));

export function Sessions() {
  const { params } = address.value;
  const wanted = asked(params);
  const request = { ...wanted, start: 0, count: PAGE };
  const before = useRef(wanted.query);
  const [answer, problem, again] = useAnswer("sessions_page", request, { many: remembering, wait: wanted.query === before.current ? 0 : WAIT });
  if (answer) before.current = answer.asked.query;
  const isCurrent = Boolean(answer) && JSON.stringify(answer.asked) === JSON.stringify(request);
  const narrowed = Boolean(wanted.project || wanted.runtime || wanted.running);
  const { query, since, until } = wanted;
  const [whole, , againWhole] = useAnswer("sessions_page", { query, since, until, count: 1 }, { skip: !narrowed });
  const version = useVersion(answer);
  const list = useRef(null);
  const field = useRef(null);
  const place = useRef({ session: "", n: -1 });
  const chosen = params.get("s") || "";
  const beside = useWide(1200);
  useChanges(() => (again(), narrowed && againWhole()));
  useTicks();
  useEffect(() => void (document.title = "Sessions · Harken") || (() => (document.title = "Harken")), []);

  const begin = useLast();
  const choose = async (n, { focus = true } = {}) => {
    const isLast = begin();
    list.current?.scrollTo(n, { onlyIfHidden: true });
    const row = list.current?.get(n) || answer?.rows[n] || (await ask("sessions_page", { ...answer.asked, start: n, count: 1 })).rows[0];
    if (!row || !isLast()) return;
    place.current = { session: row.session, n };
    setParams({ s: row.session }, { replace: true });
    if (focus) list.current?.focusRow(n, ".session-title");
  };
  /** Where the chosen row stands: where it was chosen, unless the list has moved on. */
  const at = () => {
    const held = place.current;
    if (held.session === chosen && (list.current?.get(held.n)?.session ?? chosen) === chosen) return held.n;
    const near = list.current?.find((row) => row.session === chosen) ?? -1;
    return near >= 0 ? near : held.session === chosen ? held.n : -1;
  };
  const step = (by) => (answer?.total ? void choose(Math.max(0, Math.min(answer.total - 1, at() + by))) : false);
  useKeys({
    next: () => step(1),
    previous: () => step(-1),
    first: () => void (answer?.total && choose(0)),
    last: () => void (answer?.total && choose(answer.total - 1)),
    open: () => (chosen ? void go(sessionAddress(chosen)) : false),
    filter: () => void (field.current?.focus(), field.current?.select()),
    continue: () => (beside ? document.querySelector(".preview .button.primary")?.click() : false),
    close: () => {
      if (document.activeElement === field.current) return void field.current.blur();
      if (chosen && beside) return void setParams({ s: null }, { replace: true });
      return isFiltered(wanted) ? void go("/sessions") : false;
    },
  });

  const looked = chosen || answer?.rows[0]?.session || "";
  const rowOf = (session) => {
    const near = list.current?.find((row) => row.session === session) ?? -1;
    return (near >= 0 ? list.current.get(near) : answer?.rows.find((row) => row.session === session)) || null;
  };
  const facets = (narrowed ? whole : answer)?.facets || answer?.facets;
  if (isCurrent && !answer.total && !isFiltered(wanted)) return html`<main id="main" class="page"><h1 class="screen-reader">Sessions</h1><${EmptyStore} /></main>`;
  return html`<main id="main" class=${names("sessions", { beside: beside && chosen })}>
    <h1 class="screen-reader">Sessions</h1>
    <${Tools} wanted=${wanted} answer=${answer} field=${field} facets=${facets} />
    <${Filters} facets=${facets} wanted=${wanted} />
    <section class="session-list" aria-label="Sessions">
      ${problem && !answer
        ? html`<${Problem} problem=${problem} again=${again} />`
        : problem
          ? html`<${NotAsked} problem=${problem} />`
          : !answer || (!answer.total && !isCurrent)
            ? html`<${Loading} what="sessions" />`
            : !answer.total
              ? html`<${NoMatch} wanted=${wanted} all=${whole} />`
              : html`<${Heads} />
                  <${List}
                    handle=${list}
                    source=${JSON.stringify(answer.asked)}
                    total=${answer.total}
                    version=${version}
                    label="Sessions"
                    itemRole="listitem"
                    estimate=${ROW + (answer.asked.query ? PLACE : 0)}
                    load=${(start, n) => (start ? ask("sessions_page", { ...answer.asked, start, count: n }).then((page) => page.rows) : Promise.resolve(answer.rows))}
                    row=${(row, n) => html`<${SessionRow} row=${row} chosen=${row.session === chosen} choose=${() => choose(n, { focus: false })} beside=${beside} />`}
                  />`}
    </section>
    ${beside ? html`<${Preview} session=${looked} row=${rowOf(looked)} />` : null}
  </main>`;
}

/** A number that grows with every answer: the list loads again what it shows. */
function useVersion(answer) {
  const held = useRef({ answer: null, version: 0 });
  if (held.current.answer !== answer) held.current = { answer, version: held.current.version + 1 };
  return held.current.version;
}

// -- the row of tools ---

function Tools({ wanted, answer, field, facets }) {
  const { params } = address.value;
  const [words, write] = useTyped("q", { along: { s: null } });
  const [open, setOpen] = useState(false);
  const keyed = (event) => {
    if (event.key !== "Enter" && event.key !== "ArrowDown") return;
    event.preventDefault();
    document.querySelector(".session-list .session-title")?.focus();
  };
  const told = !answer ? "" : [plural(answer.total, "session"), answer.places ? (answer.more_places ? "over " : "") + plural(answer.places, "place") : "", !answer.places && answer.price_usd_micros ? money(answer.price_usd_micros) : ""].filter(Boolean).join(", ");
  return html`<div class="session-tools">
    <div class="field session-field">
      <${Icon} name="search" />
      <input type="text" ref=${field} aria-label="Filter sessions by words in them" placeholder="Words that were said, run or read" value=${words} onInput=${(event) => write(event.target.value)} onKeyDown=${keyed} spellcheck="false" />
      <${Chips} params=${params} />
      <span class="dim sm session-told" role="status">${told}</span>
      <kbd class="key-hint">/</kbd>
    </div>
    <div class="segments" role="group" aria-label="Order">${ORDERS.map(
      ([name, label]) => html`<button aria-pressed=${wanted.order === name ? "true" : "false"} disabled=${name === "best" && !wanted.query} onClick=${() => setParams({ order: name === "newest" ? null : name }, { replace: true })}>${label}</button>`,
    )}</div>
    <button class="button filters-button" aria-expanded=${open ? "true" : "false"} aria-controls="filters" onClick=${() => setOpen(!open)}><${Icon} name="list" />Filters</button>
    ${open ? html`<div class="filters-sheet"><${Filters} facets=${facets} wanted=${wanted} id="filters" /></div>` : null}
  </div>`;
}

/** The filters in use, each with a way out. */
function chipsOf(params) {
  const found = [];
  const time = windowName(params.get("since"), params.get("until"));
  if (time) found.push(["when", time, { since: null, until: null }]);
  if (params.get("running") === "1") found.push(["", "running", { running: null }]);
  if (params.get("project")) found.push(["project", pathEnd(params.get("project")), { project: null }]);
  if (params.get("runtime")) found.push(["", runtimeName(params.get("runtime")), { runtime: null }]);
  for (const one of (params.get("has") || "").split(",").filter((name) => name in HAS)) found.push(["has", HAS[one][1], { has: without(params, one) }]);
  return found;
}

const without = (params, one) => (params.get("has") || "").split(",").filter((name) => name && name !== one).join(",") || null;

const Chips = ({ params }) =>
  chipsOf(params).map(([kind, words, away]) => html`<button class="chip" aria-label=${`Take the filter ${kind} ${shown(words)} away`} onClick=${() => setParams({ ...away, s: null })}>${kind ? html`<span class="dim">${kind}</span> ` : null}<span class="cut">${shown(words)}</span><${Icon} name="close" /></button>`);

// -- filters ---

const FEW = 5;

function Filters({ facets, wanted, id }) {
  const { params } = address.value;
  const [all, setAll] = useState(false);
  const projects = Object.entries(facets?.projects || {}).filter(([name]) => name);
  const shownProjects = all ? projects : projects.slice(0, FEW);
  const link = (changes, on, label, n, mark) =>
    html`<li><a href=${withParams({ ...changes, s: null })} aria-current=${on ? "true" : null} class=${names("facet", { none: n === 0 && !on })}>${mark}<span class="cut">${label}</span>${n === undefined ? null : html`<span class="dim">${count(n)}</span>`}</a></li>`;
  const since = params.get("since") || "";
  const inUse = (params.get("has") || "").split(",").filter(Boolean);
  return html`<nav class="filters" aria-label="Filters" id=${id}>
    <h2>When</h2><ul>
      ${WINDOWS.slice(0, 3).map(([word, label]) => link({ since: word, until: null }, since === word, label))}
      ${link({ since: null, until: null }, !since && !params.get("until"), "All time")}
      ${facets?.running || wanted.running ? link({ running: wanted.running ? null : 1 }, wanted.running, "Running now", facets?.running || 0, html`<i class="pulse"></i>`) : null}
    </ul>
    ${projects.length
      ? html`<h2>Project</h2><ul>${shownProjects.map(([path, n]) => link({ project: wanted.project === path ? null : path }, wanted.project === path, html`<span title=${shown(path)}>${shown(nameAmong(path, projects.map(([name]) => name)))}</span>`, n))}
          ${projects.length > FEW ? html`<li><button class="facet" onClick=${() => setAll(!all)}><span>${all ? "fewer" : `${projects.length - FEW} more`}</span></button></li>` : null}</ul>`
      : null}
    <h2>Program</h2><ul>${Object.entries(facets?.runtimes || {}).map(([name, n]) => link({ runtime: wanted.runtime === name ? null : name }, wanted.runtime === name, html`<${RuntimeMark} runtime=${name} />`, n))}</ul>
    <h2>Has</h2><ul>${Object.entries(HAS).map(([name, [mark, label]]) => {
      const on = inUse.includes(name);
      return link({ has: on ? without(params, name) : [...inUse, name].join(",") }, on, `${mark ? mark + " " : ""}${label}`, facets ? (facets.has?.[name] ?? 0) : undefined);
    })}</ul>
  </nav>`;
}

// -- rows ---

const Heads = () => html`<div class="session-heads" aria-hidden="true"><span>Session</span><span>What it did</span><span class="number">Asked</span><span class="number">Cost</span><span class="number">Last</span></div>`;

/** When something last happened: the hour today, the weekday in this week, else the day. */
function lastOf(row, now = Date.now()) {
  if (row.running) return "now";
  const words = day(row.active, now);
  if (words === "today") return clock(row.active);
  const days = (now - new Date(row.active)) / DAY;
  return days > 0 && days < 6 && words !== "yesterday" ? shortWeekday(timeOf(row.active)) : words;
}

function SessionRow({ row, chosen, choose, beside }) {
  const to = sessionAddress(row.session);
  const clicked = (event) => {
    if (event.target.closest("a,button") || getSelection()?.toString()) return;
    if (beside) choose();
    else go(to);
  };
  const failed = (row.failed || 0) + (row.errors || 0);
  return html`<div class=${names("session-row", { chosen })} aria-current=${chosen ? "true" : null} onClick=${clicked} onDblClick=${() => go(to)}>
    <div class="session-words">
      <a class="session-title cut" href=${to} title=${shown(row.title)}>${shown(row.title || row.short)}</a>
      <div class="session-facts">${row.project ? html`<span class="cut" title=${shown(row.project)}>${shown(pathEnd(row.project))}</span>` : null}<${RuntimeMark} runtime=${row.runtime} />${row.running ? html`<span class="accent"><i class="pulse"></i> running</span>` : null}${row.agents ? html`<span>${plural(row.agents, "agent")}</span>` : null}${failed ? html`<span class="alert">${count(failed)} failed</span>` : null}${row.compactions ? html`<span title=${plural(row.compactions, "compaction")}>◆ ${row.compactions}</span>` : null}${row.continued_by?.length ? html`<span>continued</span>` : null}${row.lost ? html`<span class="alert">partly lost</span>` : null}</div>
    </div>
    <div class="session-strip"><${OwnStrip} letters=${row.strip} most=${34} /></div>
    <div class="session-asked number">${row.prompts === null || row.prompts === undefined ? "" : html`${count(row.prompts)} <span class="dim">${row.prompts === 1 ? "prompt" : "prompts"}</span>`}</div>
    <div class="session-cost number">${priceOf(row) || html`<span class="dim">–</span>`}</div>
    <div class="session-last number dim" title=${moment(row.active)}>${lastOf(row)}</div>
    ${row.found?.length ? html`<ul class="session-places">${row.found.map((place) => html`<li><a href=${sessionAddress(place.session, { record: place.record || "" })}><span class="dim xs">${ROLES[place.role] || place.role}</span><span class="cut"><${Spots} text=${place.text} spots=${place.highlights} around /></span></a></li>`)}${row.places > row.found.length ? html`<li><a href=${sessionAddress(row.session) + "?q=" + encodeURIComponent(address.value.params.get("q") || "")}><span class="dim xs">${count(row.places - row.found.length)} more</span></a></li>` : null}</ul>` : null}
  </div>`;
}

// -- nothing ---

const NotAsked = ({ problem }) => html`<${State} title="That cannot be searched for"><p>${problem.message}</p>${problem.hint ? html`<p class="dim">${problem.hint}</p>` : null}<//>`;

function NoMatch({ wanted }) {
  const { params } = address.value;
  const chips = chipsOf(params);
  const title = wanted.query ? `No session says “${shown(params.get("q"))}”` : wanted.running && chips.length === 1 ? "No session is running" : "No session fits";
  return html`<${State} title=${title} actions=${html`<a class="button" href="/sessions">Clear all <kbd>Esc</kbd></a>${wanted.query ? html`<a class="button quiet" href=${"/search?q=" + encodeURIComponent(params.get("q"))}>Search everything</a>` : null}`}>
    <p>${wanted.query ? "Fewer or other words may help. A star finds beginnings: “connec*” finds “connection”." : wanted.running && chips.length === 1 ? "A session runs while something was added to it in the last two minutes." : "Take one of the filters away."}</p>
    ${chips.length ? html`<div class="row chips"><${Chips} params=${params} /></div>` : null}
  <//>`;
}
