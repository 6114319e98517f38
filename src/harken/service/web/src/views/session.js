// A session: its head, and one of the views of it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, exported, go, sessionAddress, setParams } from "../address.js";
import { Dialog } from "../dialog.js";
import { useDrawn } from "../drawing.js";
import { html } from "../html.js";
import { useKeys } from "../keys.js";
import { lazily } from "../lazily.js";
import { Icon, RuntimeMark } from "../marks.js";
import { ahead, ask, onChanges } from "../server.js";
import { Loading, Problem, copyLink, useAnswer, useLast } from "../states.js";
import { count, day, duration, modelName, money, pathEnd, plural, shown } from "../words.js";
import { Transcript, firstRows } from "./transcript.js";

// The transcript is what most people open first; the others are fetched later.
const inside = (content) => content;
const Agents = lazily(() => import("./agents.js").then((view) => view.Agents), inside);
const Flow = lazily(() => import("./flow.js").then((view) => view.Flow), inside);
const Lanes = lazily(() => import("./lanes.js").then((view) => view.Lanes), inside);
const Raw = lazily(() => import("./raw.js").then((view) => view.Raw), inside);
const SessionCommits = lazily(() => import("./commits.js").then((view) => view.SessionCommits), inside);
const Continue = lazily(() => import("./continue.js").then((view) => view.Continue), (content, { close }) => html`<${Dialog} label="Continue from here" close=${close}>${content}<//>`);

/** name in the address, words, view, the view needs a server */
export const VIEWS = [
  ["transcript", "Transcript", Transcript, false],
  ["flow", "Flow", Flow, false],
  ["lanes", "Lanes", Lanes, false],
  ["commits", "Commits", SessionCommits, true],
  ["agents", "Agents", Agents, false],
  ["raw", "Raw", Raw, true],
];

export function Session() {
  const { session, params } = address.value;
  const [turn, setTurn] = useState(0);
  const isTranscript = useMemo(() => !params.get("v"), [session]);
  useMemo(() => session && isTranscript && ahead("transcript", firstRows(session, params)), [session]);
  const [page, problem, again] = useSessionPage(session, isTranscript);
  const [continuing, setContinuing] = useState(false);
  const begin = useLast();
  const full = useRef(""); // an address may have the beginning of an id
  full.current = page?.session || "";
  useEffect(() => {
    const stop = onChanges((changes) => {
      const about = (change) => change.kind === "session" && (change.subject === session || change.subject.startsWith(session + "/") || session.startsWith(change.subject) || change.subject === full.current);
      if (changes.some(about)) {
        setTurn((n) => n + 1);
        again();
      }
    });
    return stop;
  }, [session]);
  useEffect(() => {
    if (page) document.title = `${page.title || page.short} · Harken`;
    return () => (document.title = "Harken");
  }, [page?.title]);

  const views = VIEWS.filter(([, , , needsServer]) => !(exported && needsServer));
  const chosen = views.find(([name]) => name === params.get("v")) || views[0];
  const show = (at) => () => (VIEWS[at] && views.includes(VIEWS[at]) && page ? go(viewAddress(page, at ? VIEWS[at][0] : "")) : false);
  useKeys({
    view1: show(0), view2: show(1), view3: show(2), view4: show(3), view5: show(4), view6: show(5),
    copy: () => void copyLink(location.href),
    continue: () => (exported ? false : void setContinuing(true)),
    close: () => (continuing ? void setContinuing(false) : params.get("e") || params.get("q") ? void setParams({ e: null, q: null }, { replace: true }) : false),
    nextSession: () => (exported || !page ? false : void neighbour(page.session, 1, begin())),
    previousSession: () => (exported || !page ? false : void neighbour(page.session, -1, begin())),
  });

  if (problem && !page) return html`<main id="main" class="page"><${Problem} problem=${problem} again=${again} /></main>`;
  if (!page) return html`<main id="main" class="page"><${Loading} what="the session" /></main>`;
  const View = chosen[2];
  return html`
    <${Head} page=${page} views=${views} chosen=${chosen[0]} onContinue=${() => setContinuing(true)} />
    <main id="main" class="session-view"><${View} key=${page.session + chosen[0]} page=${page} version=${turn} /></main>
    ${continuing ? html`<${Continue} page=${page} record=${params.get("e") || ""} close=${() => setContinuing(false)} />` : null}
  `;
}

/** The head of a session; where its rows are many, before they are counted, and again when they are. */
function useSessionPage(session, soon) {
  const [first, problem, again] = useAnswer("session_page", { session, soon }, { key: session });
  const isDrawn = useDrawn(Boolean(first));
  const [whole] = useAnswer("session_page", { session, soon: false }, { key: session, skip: !(first?.partial && isDrawn) });
  return [first?.partial && whole ? whole : first, problem, again];
}

/** The session before or behind this one in the list, newest first. */
async function neighbour(session, step, isWanted) {
  const { rows: sessions } = await ask("sessions_page", { count: 200 });
  const at = sessions.findIndex((one) => one.session === session || session.startsWith(one.session + "/"));
  const next = sessions[at + step];
  if (at >= 0 && next && isWanted()) go(sessionAddress(next.session));
}

/** From a sub-agent to its session, which may have been left out or forgotten. */
const Above = ({ page }) =>
  page.parent_stored
    ? html`<a class="link" href=${sessionAddress(page.parent)} aria-label="The session that made this sub-agent">↑</a>`
    : html`<span class="dim" title=${`A sub-agent of ${shown(page.parent)}, which is not in the store`}>↑</span>`;

function Head({ page, views, chosen, onContinue }) {
  const f = page.figures || {};
  const took = page.started && page.ended ? (new Date(page.ended) - new Date(page.started)) / 1000 : null;
  const models = Object.keys(f.models || {}).filter(Boolean).map(modelName);
  const facts = [
    page.project && html`<span title=${shown(page.project)}>${shown(pathEnd(page.project))}</span>`,
    html`<${RuntimeMark} runtime=${page.runtime} />`,
    models.length ? html`<span>${models.slice(0, 2).join(", ")}${models.length > 2 ? ` +${models.length - 2}` : ""}</span>` : null,
    page.started && html`<span>${day(page.started)}</span>`,
    f.prompts !== null && f.prompts !== undefined ? html`<span>${plural(f.prompts, "prompt")}</span>` : null,
    took ? html`<span>${duration(took)}</span>` : null,
    page.price_usd_micros !== null && page.price_usd_micros !== undefined ? html`<span>${page.unpriced?.length ? "at least " : ""}${money(page.price_usd_micros)}</span>` : null,
    f.errors ? html`<span class="alert">${plural(f.errors, "error")}</span>` : null,
    page.changed ? html`<span class="alert">≠ ${plural(page.changed, "message")} changed</span>` : null,
    page.blocked ? html`<span class="alert">✕ ${count(page.blocked)} blocked</span>` : null,
  ];
  return html`<section class="session-head" aria-label="Session">
    <div class="grow">
      <h1 class="cut" title=${shown(page.title)}>${page.parent ? html`<${Above} page=${page} /> ` : null}${shown(page.title) || page.short}${page.running ? html` <i class="pulse" title="Something was added in the last two minutes"></i>` : null}</h1>
      <div class="facts">${facts}</div>
    </div>
    <nav class="view-tabs" aria-label="Views of this session">
      ${views.map((view, at) => html`<a href=${viewAddress(page, at ? view[0] : "")} aria-current=${view[0] === chosen ? "page" : null}>${view[1]} <kbd>${VIEWS.indexOf(view) + 1}</kbd></a>`)}
    </nav>
    ${exported ? null : html`<div class="head-actions"><button class="button" onClick=${() => copyLink(location.href)}><${Icon} name="link" />Link</button><button class="button primary" onClick=${onContinue}><${Icon} name="play" />Continue</button></div>`}
  </section>`;
}

function viewAddress(page, view) {
  const { params } = address.value;
  return sessionAddress(page.session, { view, record: params.get("e") || "", agent: params.get("a") || "", at: params.get("t") || "" });
}
