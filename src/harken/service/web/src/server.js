// Everything the page knows comes through `ask`. In an export the answers lie in the file itself.
import { signal } from "@preact/signals";

/** What stands between the page and its answers: "" | "gone" (no server) | "login" (no token). */
export const trouble = signal("");

/** Call `run` when a server that did not answer does again; gives what ends it. */
export function onReturn(run) {
  let before = trouble.value;
  return trouble.subscribe((now) => {
    const isBack = before === "gone" && !now;
    before = now;
    if (isBack) run();
  });
}

/** What this visitor may do here: "context/read", "context/write", "admin". All of it until the server says otherwise. */
export const grants = signal(null);
export const may = (grant) => !grants.value || grants.value.includes(grant);

export class AskError extends Error {
  constructor(code, message, hint) {
    super(message);
    this.code = code;
    this.hint = hint || "";
  }
}

/** @type {null | ((operation: string, request: object) => Promise<any>)} */
let local = null;

/** Have answers come from somewhere else than a server. */
export function answerFrom(source) {
  local = source;
}

export const isLocal = () => local !== null;

async function post(operation, request, signal) {
  let response;
  try {
    response = await fetch("/api/v1/" + operation, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(request),
      credentials: "same-origin",
      signal,
    });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    trouble.value = "gone";
    throw new AskError("gone", "The server does not answer", "Start it again with `harken serve`");
  }
  if (response.status === 401) {
    trouble.value = "login";
    throw new AskError("login", "This page is not signed in", "Open the address that `harken serve` printed");
  }
  if (trouble.value) trouble.value = "";
  if (!response.ok) throw await errorOf(response);
  return response;
}

async function errorOf(response) {
  try {
    const { error } = await response.json();
    return new AskError(error.code, error.message, error.hint);
  } catch {
    return new AskError("http", `The server answered ${response.status}`, "");
  }
}

// Answers that came before anybody asked, each for whoever asks first and for a while: they grow old.
const early = new Map();
const keyOf = (operation, request) => operation + JSON.stringify(request);
const keep = (operation, request, answer) => early.set(keyOf(operation, request), { answer, until: performance.now() + 3000 });

/** What the server put into the page, since the page asks for it first. Where the connection broke in the middle of it, it
 * is asked for. */
export function readFirstAnswers() {
  const element = document.getElementById("first-answers");
  try {
    for (const { operation, request, answer } of element ? JSON.parse(element.textContent) : []) keep(operation, request, answer);
  } catch {
    early.clear();
  }
  element?.remove();
}

/** Ask for what is going to be asked for as soon as another answer is there. */
export function ahead(operation, request) {
  if (local || early.has(keyOf(operation, request))) return;
  const answer = post(operation, request).then((response) => response.json());
  answer.catch(() => {}); // whoever asks for it hears of it
  keep(operation, request, answer);
}

function takeEarly(operation, request) {
  const key = keyOf(operation, request);
  const found = early.get(key);
  early.delete(key);
  return found && performance.now() < found.until ? found.answer : null;
}

const MUCH = 500; // changes, of which one sees that they are missing
const LONG = 4000; // milliseconds after which a little that is missing is told, too

/** What the index lacks, as the last answer that depends on it says; since when it has lacked something; and whether that
 * is worth telling: a session that grows is behind for a moment only. What was told once is told until nothing is missing. */
export const indexing = signal({ behind: 0, stale: 0, since: 0, told: false, damaged: 0, problem: "" });

/** How much of the store an answer was made without. */
export const lackOf = (answer) => (answer?.behind || 0) + (answer?.stale || 0);

function noteIndex(answer) {
  if (!answer || typeof answer.behind !== "number") return answer;
  const { behind, stale, damaged = 0, problem = "" } = answer;
  const before = indexing.value;
  const lack = lackOf(answer);
  const since = lack ? before.since || Date.now() : 0;
  const told = lack > 0 && (before.told || lack >= MUCH || Date.now() - since >= LONG);
  const isNews = damaged !== before.damaged || problem !== before.problem;
  if (lack || before.since || isNews) indexing.value = { behind, stale, since, told, damaged, problem };
  return answer;
}

/** The answer to what the server knew would be asked; null where it is not there yet. */
export function answerNow(operation, request) {
  const found = early.get(keyOf(operation, request))?.answer;
  const answer = !found || typeof found.then === "function" ? null : takeEarly(operation, request);
  if (answer) queueMicrotask(() => noteIndex(answer)); // while a view is drawn nothing else may change
  return answer;
}

/** One answer of an operation; an `AskError` where there is none. */
export async function ask(operation, request = {}, { signal } = {}) {
  if (local) return local(operation, request);
  return noteIndex((await takeEarly(operation, request)) || (await (await post(operation, request, signal)).json()));
}

/** All answers of an operation that gives many. */
export async function askMany(operation, request = {}, { signal } = {}) {
  if (local) return local(operation, request);
  const text = await (await post(operation, request, signal)).text();
  const answers = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const last = answers.at(-1);
  if (last && last.error && Object.keys(last).length === 1) {
    throw new AskError(last.error.code, last.error.message, last.error.hint);
  }
  noteIndex(last);
  return answers;
}

/** Exchange the one-time word, or the token, in the address for a cookie, and take it out of the address. */
export async function signIn() {
  const found = /^#token=([\w.~-]+)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", location.href.split("#")[0]); // all of it: `//` at its beginning would be another server
  try {
    await (await post("login", { word: found[1] })).json();
  } catch {
    // What follows says that the page is not signed in.
  }
}

/** Ask who we are; gives what then stands between the page and its answers. */
export async function askGrants() {
  try {
    const response = await fetch("/api/v1/visitor", { credentials: "same-origin" });
    if (response.ok) grants.value = (await response.json()).grants;
    return response.status === 401 ? "login" : "";
  } catch {
    return "gone";
  }
}

// -- the feed: what changed in the store ----------------------------------------------------------------------------

/** Why no news come from a server that is there, as it says itself: the file of the store is another one, say. */
export const silence = signal(null);

const hearers = new Set();
let last = "";

/** Call `hear` with the changes of the store as they come; gives what ends it. */
export function onChanges(hear) {
  hearers.add(hear);
  return () => hearers.delete(hear);
}

function tell(changes) {
  for (const hear of hearers) hear(changes);
}

/** Follow the store. Browsers allow few connections to one server: of several tabs one listens and tells the others. */
export function followFeed() {
  if (local || !("EventSource" in window)) return;
  const others = "BroadcastChannel" in window ? new BroadcastChannel("harken-feed") : null;
  if (others) others.onmessage = ({ data }) => {
    if (data.changes) tell(data.changes);
    else if ("silence" in data) silence.value = data.silence;
    else trouble.value = data.trouble;
  };
  const set = (value) => {
    if (value && trouble.value === "login") return;
    trouble.value = value;
    others?.postMessage({ trouble: value });
  };
  const fallSilent = (problem) => {
    if (!problem && !silence.value) return;
    silence.value = problem;
    others?.postMessage({ silence: problem });
  };
  const listen = () =>
    new Promise(() => {
      const open = () => {
        const source = new EventSource("/api/v1/feed" + (last ? "?after=" + encodeURIComponent(last) : ""));
        source.onopen = () => {
          if (trouble.value === "login") askGrants();
          set("");
        };
        source.onmessage = (event) => {
          last = event.lastEventId || last;
          const changes = JSON.parse(event.data).changes || [];
          fallSilent(null);
          tell(changes);
          others?.postMessage({ changes });
        };
        source.addEventListener("end", (event) => {
          const { error } = JSON.parse(event.data);
          if (error.code !== "not_signed_in") fallSilent(error); // who is signed out is told by all of the page
        });
        source.onerror = () => {
          // A feed also ends while its server is there, and when the token that follows it is worth nothing any more.
          askGrants().then((found) => found && set(found));
          if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
          source.close();
          setTimeout(open, 2000);
        };
      };
      open();
    });
  if (others && navigator.locks) navigator.locks.request("harken-feed", listen);
  else listen();
}
