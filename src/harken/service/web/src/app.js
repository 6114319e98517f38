// The page: the frame around every view, and which view an address means.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { address, go } from "./address.js";
import { html } from "./html.js";
import { KEYS, useKeys } from "./keys.js";
import { Icon, Sign } from "./marks.js";
import { Help } from "./help.js";
import { Palette } from "./palette.js";
import { endFirstWords, firstWordsDrawn, pageArrived, stylesRead } from "./arrival.js";
import { askGrants, followFeed, grants, indexing, readFirstAnswers, signIn, silence, trouble } from "./server.js";
import { Command, Loading, State, Toast } from "./states.js";
import { nextTheme } from "./theme.js";
import { followRunning, running } from "./running.js";
import { fetchRest, lazily } from "./lazily.js";
import { plural, shown } from "./words.js";
import { Session } from "./views/session.js";
import "./styles/first.css";
import "./styles/home.css";
import "./styles/sessions.css";
import "./styles/viewer.css";
import "./styles/stats.css";
import "./styles/documents.css";
import "./styles/search.css";

// Whoever opens a session waits for none of these: they are fetched when they are asked for, or when all else is there.
// Their styles come with the rest.
const Home = lazily(() => import("./views/home.js").then((view) => view.Home));
const Sessions = lazily(() => import("./views/sessions.js").then((view) => view.Sessions));
const Commits = lazily(() => import("./views/commits.js").then((view) => view.Commits));
const Stats = lazily(() => import("./views/stats.js").then((view) => view.Stats));
const Documents = lazily(() => import("./views/documents.js").then((view) => view.Documents));
const Search = lazily(() => import("./views/search.js").then((view) => view.Search));

/** page, words, icon, view */
const PAGES = [
  ["home", "Home", "home", Home],
  ["sessions", "Sessions", "list", Sessions],
  ["commits", "Commits", "branch", Commits],
  ["stats", "Stats", "chart", Stats],
  ["documents", "Documents", "page", Documents],
];
const OTHERS = { session: Session, commit: Commits, search: Search };
const BELONGS = { session: "sessions", commit: "commits", search: "sessions" };

/** What lies over the page: "", "palette" or "help". */
export const overlay = signal("");

function Links({ name }) {
  const current = BELONGS[address.value.page] || address.value.page;
  return PAGES.map(
    ([page, words, icon]) => html`<a href=${page === "home" ? "/" : "/" + page} aria-current=${page === current ? "page" : null}>${name === "tabs" ? html`<${Icon} name=${icon} />` : null}<span>${words}</span></a>`,
  );
}

function Top() {
  return html`<header class="top">
    <a class="brand" href="/" aria-label="Harken, home"><${Sign} /><span>Harken</span></a>
    <nav class="links" aria-label="Main"><${Links} /></nav>
    <button class="omni" aria-haspopup="dialog" onClick=${() => (overlay.value = "palette")}>
      <${Icon} name="search" /><span class="grow cut">Search prompts, answers, commands, files, ids</span><kbd>Ctrl K</kbd>
    </button>
    <div class="end">
      ${running.value && trouble.value !== "login" ? html`<a class="live" href="/sessions?running=1"><i class="pulse"></i>${running.value} running</a>` : null}
      <button class="icon-button" aria-label="Light or dark" onClick=${nextTheme}><${Icon} name="sun" /></button>
      <button class="icon-button" aria-label="Keys" onClick=${() => (overlay.value = "help")}><kbd>?</kbd></button>
    </div>
  </header>`;
}

function Trouble() {
  if (!trouble.value) return null;
  if (trouble.value === "login") {
    const was = grants.value !== null;
    return html`<${State} title=${was ? "This page was signed out" : "This page is not signed in"}>
      <p>${was ? "Its token was revoked or has expired, so nothing is shown any more. " : ""}Start <code>harken serve</code> again and open the address that it prints; it works once. Or make a token, and put it behind the address of this page as <code>#token=TOKEN</code>:</p>
      <${Command} text="harken token create my-browser --grant admin" />
    <//>`;
  }
  return html`<div class="banner" role="status"><b>The server does not answer.</b> What you see may be old. Start it again with <code>harken serve</code>; the page goes on by itself.</div>`;
}

/** Why what is shown is old, or not complete yet. */
function Indexing() {
  if (silence.value) return html`<div class="banner" role="status"><b>What you see may be old:</b> ${shown(silence.value.message)}. ${shown(silence.value.hint)}.</div>`;
  const { behind, stale, told, damaged, problem } = indexing.value;
  if (problem || damaged) {
    const what = problem ? `The index cannot follow the store: ${shown(problem)}.` : `${plural(damaged, "part")} of the store cannot be read.`;
    return html`<div class="banner" role="status"><b>${what}</b> Lists, numbers and search lack it; <code>harken fsck</code> says what is lost.</div>`;
  }
  if (!told) return null;
  const left = behind ? `${plural(behind, "change")} of the store to go` : `${plural(stale, "session")} to count`;
  return html`<div class="banner quiet" role="status"><b>The index is being made: ${left}.</b> Lists, numbers and search are complete when it is done. This page goes on by itself.</div>`;
}

function App() {
  useKeys({
    palette: () => void (overlay.value = overlay.value === "palette" ? "" : "palette"),
    help: () => void (overlay.value = overlay.value === "help" ? "" : "help"),
    theme: nextTheme,
    home: () => go("/"),
    sessions: () => go("/sessions"),
    commits: () => go("/commits"),
    stats: () => go("/stats"),
    documents: () => go("/documents"),
    close: () => (overlay.value ? void (overlay.value = "") : false),
  });
  const { page } = address.value;
  const view = OTHERS[page] || PAGES.find(([name]) => name === page)?.[3];
  useEffect(() => void document.getElementById("main")?.scrollTo(0, 0), [page]);
  return html`
    <a class="skip" href="#main">Skip to the content</a>
    <${Top} />
    ${trouble.value === "gone" ? html`<${Trouble} />` : html`<${Indexing} />`}
    ${trouble.value === "login" ? html`<main id="main" class="page"><${Trouble} /></main>` : view ? html`<${view} key=${address.value.session} />` : html`<main id="main" class="page"><${State} title="There is no such page" actions=${html`<a class="button" href="/">Home</a>`}><p>Nothing is shown at this address.</p><//></main>`}
    <nav class="tabbar" aria-label="Main, small screens"><${Links} name="tabs" /></nav>
    <${Toast} />
    ${overlay.value === "palette" ? html`<${Palette} close=${() => (overlay.value = "")} />` : null}
    ${overlay.value === "help" ? html`<${Help} keys=${KEYS} close=${() => (overlay.value = "")} />` : null}
  `;
}

const SLOW = 250; // milliseconds after which whoever waits sees that something comes

/** Wait for the answers that come with the page, and show the frame meanwhile; who goes elsewhere does not wait for them. */
async function arrive() {
  const from = address.value.text;
  const left = new Promise((done) => address.subscribe((now) => now.text !== from && done()));
  const slow = setTimeout(async () => {
    await stylesRead();
    if (!isHere) render(html`<${Top} /><main id="main" class="page"><${Loading} what="the session" /></main>`, document.getElementById("app"));
  }, SLOW);
  let isHere = false;
  await Promise.race([pageArrived().then(firstWordsDrawn), left]);
  isHere = true;
  clearTimeout(slow);
  readFirstAnswers();
}

await arrive();
await signIn();
addEventListener("hashchange", signIn);
endFirstWords();
render(html`<${App} />`, document.getElementById("app"));
followFeed();
followRunning();
askGrants();
setTimeout(fetchRest, 1500);
