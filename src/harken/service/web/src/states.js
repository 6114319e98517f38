// What is shown where there is nothing to show: each says what happened and what to do next.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { html } from "./html.js";
import { signal } from "@preact/signals";
import { AskError, answerNow, ask, lackOf, may, onReturn } from "./server.js";

export const State = ({ title, children, actions }) =>
  html`<section class="state"><h2>${title}</h2><div>${children}</div>${actions ? html`<div class="row">${actions}</div>` : null}</section>`;

export const Loading = ({ what = "" }) =>
  html`<section class="state loading" aria-busy="true" aria-label=${"Loading " + what}>${[62, 88, 74, 40, 80].map((width) => html`<i style=${{ width: width + "%" }}></i>`)}</section>`;

export function Problem({ problem, again }) {
  if (problem.code === "old") return html`<${State} title="This page has to be loaded again" actions=${html`<button class="button" onClick=${() => location.reload()}>Load it again</button>`}><p>${problem.message}.</p><p class="dim">${problem.hint}.</p><//>`;
  const title = problem.code === "not_found" ? "There is no such thing here" : problem.code === "gone" ? "The server does not answer" : problem.code === "login" ? "This page is not signed in" : "That did not work";
  return html`<${State} title=${title} actions=${again ? html`<button class="button" onClick=${again}>Try again</button><a class="button quiet" href="/">Home</a>` : html`<a class="button" href="/">Home</a>`}>
    <p>${problem.message}</p>${problem.hint ? html`<p class="dim">${problem.hint}</p>` : null}
  <//>`;
}

export const Command = ({ text }) => {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<div class="command"><code class="cut">${text}</code><button class="button quiet" onClick=${copy}>${copied ? "Copied" : "Copy"}</button></div>`;
};

/** Beside a button that writes, where this visitor may not. */
export const Refused = ({ grant, children }) =>
  may(grant) ? null : html`<p class="dim sm" role="note">This server only shows, or your token may only read. ${children}</p>`;

/** What was just done, where nothing else on the page shows it. */
export const said = signal("");
let unsay = 0;

export async function copyLink(link) {
  await copyText(link);
  tell("The link is copied");
}

export function tell(words) {
  said.value = words;
  clearTimeout(unsay);
  unsay = setTimeout(() => (said.value = ""), 2500);
}

export const Toast = () => html`<div class=${said.value ? "toast" : "screen-reader"} role="status">${said.value}</div>`;

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea"); // where the clipboard may not be written, the old way does
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

const SOON = 2500;
const SELDOM = 60_000;

/**
 * The answer of an operation: `[answer, problem, again]`. Asked again when the request changes; the old answer stays
 * until the new one is there, unless `key` (what is looked at) changes. `again` lets what is on its way arrive first: news
 * that come faster than answers would put off every one of them. `wait`: milliseconds, for what is being typed.
 */
export function useAnswer(operation, request, { key = "", skip = false, many = null, wait = 0 } = {}) {
  const [state, setState] = useState(() => ({ key, answer: skip || many ? null : answerNow(operation, request), problem: null }));
  const isGiven = useRef(state.answer !== null);
  const [turn, setTurn] = useState(0);
  const asked = JSON.stringify(request);
  const way = useRef({ out: null, again: false }); // what is on its way, and whether it is to be asked for once more
  const again = () => (way.current.out ? void (way.current.again = true) : setTurn((n) => n + 1));
  // Before the screen is drawn: an answer is not to wait for a picture of its absence.
  useLayoutEffect(() => {
    if (skip) return undefined;
    if (isGiven.current) return void (isGiven.current = false);
    const stop = new AbortController();
    way.current = { out: stop, again: false };
    const settled = (next) => {
      if (stop.signal.aborted) return;
      const isOld = way.current.again;
      way.current = { out: null, again: false };
      setState(next);
      if (isOld) again();
    };
    const get = () =>
      (many || ask)(operation, request, { signal: stop.signal })
        .then((answer) => settled({ key, answer, problem: null }))
        .catch((problem) => {
          if (problem.name === "AbortError") return;
          const told = problem instanceof AskError ? problem : new AskError("page", String(problem.message || problem), "This is a fault of the page");
          settled((before) => ({ key, answer: before.key === key ? before.answer : null, problem: told }));
        });
    const later = wait ? setTimeout(get, wait) : void get();
    return () => {
      clearTimeout(later);
      stop.abort();
      if (way.current.out === stop) way.current = { out: null, again: false };
    };
  }, [operation, asked, key, skip, turn]);
  // An answer that the index was not ready for is asked for again until it is; less often where nothing moves.
  const lack = state.key === key ? lackOf(state.answer) || lackOf(state.answer?.total) : 0;
  const late = useRef({ lack: 0, wait: SOON });
  useEffect(() => {
    const wait = lack && lack >= late.current.lack && late.current.lack ? Math.min(2 * late.current.wait, SELDOM) : SOON;
    late.current = { lack, wait };
    if (!lack) return undefined;
    const later = setTimeout(again, wait);
    return () => clearTimeout(later);
  }, [state.answer]);
  const isGone = state.problem?.code === "gone";
  useEffect(() => (isGone ? onReturn(() => setTurn((n) => n + 1)) : undefined), [isGone]);
  const current = state.key === key ? state : { answer: null, problem: null };
  return [current.answer, current.problem, again];
}

/** For what comes later: `const isLast = begin()`, and `isLast()` until it is begun again or the view is gone. */
export function useLast() {
  const turn = useRef(0);
  useLayoutEffect(() => () => void (turn.current = NaN), []);
  return () => {
    const mine = ++turn.current;
    return () => mine === turn.current;
  };
}
