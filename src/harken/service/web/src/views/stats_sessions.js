// What reports of single sessions tell: how full the context was, and who did the work.
import { useEffect, useState } from "preact/hooks";
import { sessionAddress } from "../address.js";
import { html } from "../html.js";
import { ask } from "../server.js";
import { useAnswer } from "../states.js";
import { count, duration, few, moment, plural, shown } from "../words.js";

const CURVES = 3;
const POINTS = 400;
const MOST_MESSAGES = 20_000; // a longer session's report takes too long to wait for

/** The reports of some sessions, one after the other: they are made from whole sessions. */
function useReports(sessions) {
  const [found, setFound] = useState({});
  const key = sessions.map((one) => one.session).join(" ");
  useEffect(() => {
    const stop = new AbortController();
    setFound({});
    (async () => {
      for (const { session } of sessions) {
        const report = await ask("report", { session }, { signal: stop.signal }).catch(() => null);
        if (stop.signal.aborted) return;
        setFound((before) => ({ ...before, [session]: report }));
      }
    })();
    return () => stop.abort();
  }, [key]);
  return found;
}

const short = (title, session) => shown(title) || session.slice(0, 8);

// -- how full the context was ---

/** One agent's requests: the one that made the most of them. */
function curveOf(report) {
  const all = report?.compactions?.curve || [];
  const counts = new Map();
  for (const point of all) counts.set(point.agent || "", (counts.get(point.agent || "") || 0) + 1);
  const agent = [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
  const own = all.filter((point) => (point.agent || "") === agent).map((point) => point.tokens);
  const every = Math.max(1, own.length / POINTS);
  return { tokens: Array.from({ length: Math.min(own.length, POINTS) }, (_, n) => own[Math.floor(n * every)]), requests: own.length, most: own.reduce((a, b) => Math.max(a, b), 0), folds: report?.compactions?.compactions?.length || 0 };
}

export function Pressure({ window, project }) {
  const [page] = useAnswer("sessions_page", { ...window, project, order: "cost", count: 12 });
  const chosen = (page?.rows || []).filter((row) => row.messages < MOST_MESSAGES && row.calls + row.messages > 8).slice(0, CURVES);
  const reports = useReports(chosen);
  const curves = chosen.map((row, n) => ({ row, n, ...curveOf(reports[row.session]) })).filter((one) => one.tokens.length > 1);
  const waiting = chosen.some((row) => reports[row.session] === undefined);
  const most = Math.max(1000, ...curves.map((one) => one.most));
  const step = [10, 20, 50, 100, 200, 500].map((n) => n * 1000).find((n) => most / n <= 4.2) || 1_000_000;
  const top = Math.max(step, Math.ceil(most / step) * step);
  const line = (tokens) => tokens.map((value, n) => `${n ? "L" : "M"}${((n / (tokens.length - 1)) * 1000).toFixed(1)} ${(200 - (value / top) * 200).toFixed(1)}`).join("");
  return html`<section class="card pressure" aria-labelledby="pressure">
    <header><h2 id="pressure">Context pressure</h2><span class="dim">tokens held, request by request, in the most expensive sessions</span></header>
    ${curves.length
      ? html`<div class="curves" role="img" aria-label=${curves.map((one) => `${short(one.row.title, one.row.session)}: up to ${few(one.most)} tokens in ${plural(one.requests, "request")}, ${plural(one.folds, "compaction")}`).join("; ")}>
            ${Array.from({ length: Math.round(top / step) + 1 }, (_, n) => html`<div class="bars-line" style=${{ bottom: `${((n * step) / top) * 100}%` }}><span>${n ? few(n * step) : "0"}</span></div>`)}
            <svg viewBox="0 0 1000 200" preserveAspectRatio="none">${curves.map((one) => html`<path class=${"line" + one.n} d=${line(one.tokens)} />`)}</svg>
          </div>
          <div class="curves-axis dim xs"><span>first request</span><span>last request</span></div>
          <ul class="curve-keys sm">${curves.map((one) => html`<li><i class=${"line" + one.n}></i><a class="cut" href=${sessionAddress(one.row.session)} title=${shown(one.row.title)}>${short(one.row.title, one.row.session)}</a><span class="dim xs">${few(one.most)} at most${one.folds ? `, ◆ ${one.folds}` : ""}</span></li>`)}</ul>`
      : html`<p class="dim sm pad-block">${waiting || !page ? "Counting" : "No session here tells how many tokens its requests held."}</p>`}
  </section>`;
}

// -- who did the work ---

export function Delegation({ window, project, total }) {
  const [page] = useAnswer("sessions_page", { ...window, project, has: ["agents"], order: "cost", count: 100 });
  const rows = page?.rows || [];
  const chosen = rows.filter((row) => row.messages < MOST_MESSAGES).slice(0, 5);
  const reports = useReports(chosen);
  const agents = rows.reduce((sum, row) => sum + row.agents, 0);
  const known = chosen.filter((row) => reports[row.session]).map((row) => ({ row, own: reports[row.session].delegation.own, theirs: reports[row.session].delegation.delegated }));
  const unit = known.some(({ own, theirs }) => own.requests + theirs.requests) ? "requests" : "responses"; // not everybody counts requests
  const most = Math.max(1, ...known.map(({ own, theirs }) => own[unit] + theirs[unit]));
  return html`<section class="card delegation" aria-labelledby="delegation">
    <header><h2 id="delegation">Delegation</h2><span class="dim">${rows.length ? `${page.total > rows.length ? "at least " : ""}${plural(agents, "sub-agent")} in ${plural(page.total, "session")}` : page ? "no session had sub-agents" : ""}</span></header>
    <dl class="pairs wide">
      ${total.peak_sessions ? html`<dt>Most sessions at once</dt><dd>${count(total.peak_sessions)}${total.peak_at ? html` <span class="dim">${moment(total.peak_at)}</span>` : null}</dd>` : null}
      <dt>Calls of tools</dt><dd>${count(total.calls)}${total.took_seconds ? html` <span class="dim">${duration(total.took_seconds)} together</span>` : null}</dd>
      ${total.sessions ? html`<dt>Requests to models</dt><dd>${count(total.requests)} <span class="dim">${count(Math.round(total.requests / total.sessions))} a session</span></dd>` : null}
    </dl>
    ${known.length
      ? html`<table class="figures"><thead><tr><th scope="col">${unit === "requests" ? "Requests" : "Answers"} of</th><td></td><th scope="col" class="number">Main</th><th scope="col" class="number">Sub-agents</th></tr></thead>
          <tbody>${known.map(({ row, own, theirs }) => html`<tr><th scope="row" class="cut" title=${shown(row.title)}><a href=${sessionAddress(row.session, { view: "agents" })}>${short(row.title, row.session)}</a></th><td><span class="share two" aria-hidden="true"><i style=${{ width: `${(100 * own[unit]) / most}%` }}></i><b style=${{ width: `${(100 * theirs[unit]) / most}%` }}></b></span></td><td class="number">${count(own[unit])}</td><td class="number">${count(theirs[unit])} <span class="dim">in ${theirs.agents}</span></td></tr>`)}</tbody></table>`
      : null}
  </section>`;
}
