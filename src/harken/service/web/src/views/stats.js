// Numbers over a window of time: a sentence first, then cost, hours, tokens, tools and delegation.
import { useEffect } from "preact/hooks";
import { address, setParams, withParams } from "../address.js";
import { html } from "../html.js";
import { Icon } from "../marks.js";
import { askMany, lackOf } from "../server.js";
import { Loading, Problem, State, useAnswer } from "../states.js";
import { count, few, modelName, money, pathEnd, plural, shown } from "../words.js";
import { EmptyStore } from "./empty.js";
import { useChanges } from "./pieces.js";
import { CostByDay, saveTable } from "./stats_days.js";
import { Delegation, Pressure } from "./stats_sessions.js";
import { Shares, Tools } from "./stats_tables.js";
import { WINDOWS, dayAfter, sinceOf, untilOf, windowName } from "./windows.js";

const USUAL = "month";
const CHOICES = [...WINDOWS.slice(1), ["all", "All", null]];

/** Everything that was asked for of usage, by what it is: `{ project: [...], tool: [...], total }`. */
export const sortOut = (operation, request, options) =>
  askMany(operation, request, options).then((answers) => {
    const found = { total: answers.find((one) => one.hours) || null };
    for (const one of answers) if (one.by) (found[one.by] ||= []).push(one);
    return found;
  });

export function Stats() {
  const { params } = address.value;
  const project = params.get("project") || "";
  const chosen = params.get("since") || "";
  const usual = { since: sinceOf(chosen || USUAL), until: untilOf(params.get("until")) };
  const sides = { by: ["day", "project", "model", "runtime", "tool"] };
  const [first, problem, again] = useAnswer("usage", { ...usual, ...sides, project }, { many: sortOut, key: usual.since + usual.until + project });
  // Nothing in the usual window, and nobody chose one: everything there is says more.
  const wider = !chosen && !params.get("until") && first && !first.total?.requests;
  const [whole, , againWhole] = useAnswer("usage", { ...sides, project }, { many: sortOut, key: project, skip: !wider });
  const [listed] = useAnswer("usage", { ...usual, ...(wider ? { since: "" } : {}), by: ["project"] }, { many: sortOut, key: usual.since });
  useChanges(() => (again(), wider && againWhole()), 10_000);
  useEffect(() => void (document.title = "Stats · Harken") || (() => (document.title = "Harken")), []);
  const told = wider ? whole : first;
  const window = wider ? { since: "", until: "" } : usual;
  const words = { since: wider ? "all" : chosen || USUAL, until: params.get("until") || "" };
  return html`<main id="main" class="stats">
    <h1 class="screen-reader">Stats</h1>
    <${StatsTools} words=${words} project=${project} projects=${listed?.project || []} told=${told} />
    <div class="page stats-page">
      ${problem && !first
        ? html`<${Problem} problem=${problem} again=${again} />`
        : !told
          ? html`<${Loading} what="numbers" />`
          : !told.total?.requests && !told.total?.calls
            ? html`<${NoNumbers} wider=${wider} project=${project} lack=${lackOf(told.total)} />`
            : html`<${Sentence} told=${told} words=${words} project=${project} wider=${wider} />
                <div class="cards">
                  ${told.total.requests
                    ? html`<${CostByDay} window=${window} project=${project} told=${told} />
                        <${Shares} told=${told} />
                        <${Heat} total=${told.total} />
                        <${Pressure} window=${window} project=${project} />`
                    : null}
                  <${Tools} told=${told} />
                  <${Delegation} window=${window} project=${project} total=${told.total} />
                </div>
                <${Footnotes} total=${told.total} />`}
    </div>
  </main>`;
}

function StatsTools({ words, project, projects, told }) {
  const known = words.since === "all" || WINDOWS.some(([name]) => name === words.since);
  return html`<div class="stats-tools">
    <div class="segments" role="group" aria-label="Time">${CHOICES.map(([word, label]) => html`<button aria-pressed=${words.since === word && !words.until ? "true" : "false"} onClick=${() => setParams({ since: word, until: null }, { replace: true })}>${label}</button>`)}${known && !words.until ? null : html`<button aria-pressed="true">${windowName(words.since, words.until)}</button>`}</div>
    <label class="stats-choice"><span class="screen-reader">Project</span><select value=${project} onChange=${(event) => setParams({ project: event.target.value || null }, { replace: true })}>
      <option value="">All projects</option>
      ${projects.filter((one) => one.key).map((one) => html`<option value=${one.key} selected=${one.key === project}>${shown(pathEnd(one.key, 2))}</option>`)}
      ${project && !projects.some((one) => one.key === project) ? html`<option value=${project} selected>${shown(pathEnd(project, 2))}</option>` : null}
    </select><${Icon} name="down" /></label>
    <span class="grow"></span>
    <span class="dim sm stats-note">each session and each token is counted once</span>
    ${told?.total ? html`<button class="button" onClick=${() => saveTable(told)}><${Icon} name="save" />CSV</button>` : null}
  </div>`;
}

function NoNumbers({ wider, project, lack }) {
  const [listed, problem, again] = useAnswer("sessions_page", { count: 1 });
  if (lack) return html`<${State} title="Nothing is counted yet"><p>The numbers are still being made. This page goes on by itself.</p><//>`;
  if (problem && !listed) return html`<${Problem} problem=${problem} again=${again} />`;
  if (!listed) return html`<${Loading} what="numbers" />`;
  if (!listed.total) return html`<${EmptyStore} />`;
  if (wider && !project) return html`<${State} title="Nothing was counted here" actions=${html`<a class="button" href="/sessions">Sessions</a>`}><p>In none of ${plural(listed.total, "session")} was a tool called, and nobody counted the tokens that models used.</p><//>`;
  return html`<${State} title="Nothing was counted here" actions=${html`<a class="button" href="/stats?since=all">All time, all projects</a>`}><p>No model was asked and no tool was called in this window${project ? html` in <b>${shown(pathEnd(project, 2))}</b>` : null}. A wider one may have something.</p><//>`;
}

// -- the sentence ---

/** in 30 days, today, since 14 Jan, from 14 Jan to 20 Jan, on 14 Jan */
function inWords({ since, until }) {
  const name = windowName(since, until);
  if (since === "all" || !name) return "altogether";
  if (WINDOWS.some(([word]) => word === since) && !until) return since === "today" ? "today" : since === "year" ? "in a year" : `in ${name}`;
  return name.includes(" to ") ? `from ${name}` : /^(since|until) /.test(name) ? name : `on ${name}`;
}

/** 40 %; what is very little is not nothing, and what is nearly all is not all. */
const percent = (part, whole) => (whole ? `${part && part < whole * 0.005 ? "less than 1" : part < whole && part > whole * 0.995 ? "more than 99" : Math.round((100 * part) / whole)} %` : "");

function Sentence({ told, words, project, wider }) {
  const { total } = told;
  const price = total.price_usd_micros;
  if (!total.requests) return html`<p class="sentence stats-sentence">Tools were called <a href="/sessions">${plural(total.calls, "time")}</a>${total.failed ? html`, of which <a class="alert" href="/sessions?has=errors">${count(total.failed)} failed</a>` : null}. Nobody counted the tokens that models used.</p>`;
  const model = (told.model || []).find((one) => one.price_usd_micros);
  const best = (told.day || []).filter((one) => one.key).reduce((most, one) => ((one.price_usd_micros || 0) > (most?.price_usd_micros || 0) ? one : most), null);
  const { input, cache_read: cached, cache_write: written } = total.usage;
  const given = (input || 0) + (cached || 0) + (written || 0);
  const where = new URLSearchParams();
  if (words.since !== "all") where.set("since", words.since);
  if (words.until) where.set("until", words.until);
  if (project) where.set("project", project);
  const sessions = (more = "") => "/sessions?" + [where.toString(), more].filter(Boolean).join("&");
  const over = inWords(words);
  return html`<p class="sentence stats-sentence">
    ${wider ? html`<span>No tokens were counted in the last 30 days. </span>` : null}
    ${price !== null ? html`<a href=${sessions("order=cost")}>${Object.keys(total.unpriced).length ? "At least " : ""}${money(price)}</a> ${over} over ` : html`${over === "altogether" ? "Altogether" : over[0].toUpperCase() + over.slice(1)} `}<a href=${sessions()}>${plural(total.sessions, "session")}</a>${price === null ? html` used <a href=${withParams({ of: "tokens" })}>${few(given + (total.usage.output || 0))} tokens</a>` : null}${price && model ? html`: ${percent(model.price_usd_micros, price)} of it on <a href=${"/search?q=" + encodeURIComponent(`model:${model.key}`)}>${shown(modelName(model.key))}</a>` : null}${price && best?.price_usd_micros && (told.day || []).length > 2 ? html`, ${percent(best.price_usd_micros, price)} on <a href=${"/?day=" + best.key}>one day</a>` : null}.
    ${cached ? html` <a href=${withParams({ of: "tokens" })}>${percent(cached, given)}</a> of the input came from the cache.` : null}
    ${total.failed ? html` <a class="alert" href=${sessions("has=errors")}>${plural(total.failed, "call")} failed</a> of ${count(total.calls)}.` : total.calls ? ` None of ${plural(total.calls, "call")} failed.` : null}
  </p>`;
}

// -- hours ---

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** From 0 to 4 by how much it is of the most; the smallest number is not nothing. */
const heatOf = (n, most) => (n ? Math.max(1, Math.min(4, Math.ceil((4 * Math.sqrt(n)) / Math.sqrt(most)))) : 0);

function Heat({ total }) {
  const most = Math.max(1, ...total.hours.flat());
  const sum = total.hours.flat().reduce((all, n) => all + n, 0);
  return html`<section class="card heat" aria-labelledby="heat">
    <header><h2 id="heat">When agents answer</h2><span class="dim">${total.zone || "local time"}, ${plural(sum, "request")}</span></header>
    <div class="scroll-x" tabindex="0" role="group" aria-label="Requests by weekday and hour"><table>
      <thead><tr><td></td>${Array.from({ length: 24 }, (_, hour) => html`<th scope="col">${String(hour).padStart(2, "0")}</th>`)}</tr></thead>
      <tbody>${total.hours.map((hours, n) => html`<tr><th scope="row">${DAYS[n]}</th>${hours.map((requests, hour) => html`<td class=${"heat-" + heatOf(requests, most)} title=${`${DAYS[n]} ${hour}:00, ${plural(requests, "request")}`}>${requests ? few(requests) : ""}</td>`)}</tr>`)}</tbody>
    </table></div>
  </section>`;
}

function Footnotes({ total }) {
  const unpriced = Object.entries(total.unpriced || {});
  const unverified = Object.entries(total.unverified || {});
  const notes = [
    unpriced.length ? `No price is known of ${unpriced.map(([name, n]) => `${shown(name) || "an unnamed model"} (${plural(n, "request")})`).join(", ")}: the cost is the least it can be.` : "",
    unverified.length ? `Nobody compared the price of ${unverified.map(([name]) => shown(name)).join(", ")} with what was published.` : "",
    total.uncounted ? `In ${plural(total.uncounted, "session")} a model answered and nobody counted tokens.` : "",
    total.behind || total.stale ? `The index is not up to date yet: ${plural(total.behind + total.stale, "change")} to go.` : "",
    total.missing ? `${plural(total.missing, "part")} of the store cannot be read; \`harken index --status\` names them.` : "",
    total.problem,
  ].filter(Boolean);
  return html`<ul class="notes dim sm">${notes.map((one) => html`<li>${one}</li>`)}<li>Costs are at list price. Days and hours are those of the server${total.zone ? ` (${total.zone})` : ""}.</li></ul>`;
}
