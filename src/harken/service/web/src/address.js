// The address is the state of the page: what is looked at, from which side, and what is selected.
//
//   /                      home                     /s/SESSION?v=VIEW&e=ID.INDEX&a=AGENT&q=WORDS&t=TIME
//   /sessions?q=&project=  sessions                 /c/CTX        a commit
//   /commits  /stats  /documents  /search?q=
//
// Things are named by their ids, never by their position, so that a link still means the same after an import.
// An export is one file: there the same text stands behind the `#`.
import { computed, signal } from "@preact/signals";

export const exported = location.protocol === "file:" || Boolean(document.getElementById("harken-data"));

function here() {
  return exported ? location.hash.slice(1) || "/s/export" : location.pathname + location.search;
}

const text = signal(here());

/** @typedef {{ page: string, session: string, commit: string, params: URLSearchParams, text: string }} Address */

/** @returns {Address} */
export function parse(given) {
  const [path, search = ""] = splitOnce(given, "?");
  const params = new URLSearchParams(search);
  const parts = path.split("/").filter(Boolean);
  const found = { page: parts[0] || "home", session: "", commit: "", params, text: given };
  if (found.page === "s") return { ...found, page: "session", session: rest(parts) };
  if (found.page === "c") return { ...found, page: "commit", commit: rest(parts) };
  return found;
}

function splitOnce(given, mark) {
  const at = given.indexOf(mark);
  return at < 0 ? [given] : [given.slice(0, at), given.slice(at + 1)];
}

function rest(parts) {
  try {
    return decodeURIComponent(parts.slice(1).join("/"));
  } catch {
    return parts.slice(1).join("/");
  }
}

export const address = computed(() => parse(text.value));

/** Look at something else. `replace` leaves no step behind for the back button: for what changes with every key. */
export function go(to, { replace = false } = {}) {
  if (to === text.value) return;
  if (exported) {
    history[replace ? "replaceState" : "pushState"](null, "", "#" + to);
  } else {
    history[replace ? "replaceState" : "pushState"](null, "", to);
  }
  text.value = to;
}

/** The present address with some parameters changed; null and "" take one away. */
export function withParams(changes, given = address.value) {
  const params = new URLSearchParams(given.params);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") params.delete(name);
    else params.set(name, String(value));
  }
  const path = splitOnce(given.text, "?")[0];
  const search = params.toString();
  return search ? `${path}?${search}` : path;
}

export const setParams = (changes, options) => go(withParams(changes), options);

/** The address of a session, of a view of it, of a record in it. */
export function sessionAddress(session, { view = "", record = "", agent = "", at = "" } = {}) {
  const path = "/s/" + session.split("/").map(encodeURIComponent).join("/");
  const params = new URLSearchParams();
  if (view) params.set("v", view);
  if (record) params.set("e", record);
  if (agent) params.set("a", agent);
  if (at) params.set("t", at);
  const search = params.toString();
  return search ? `${path}?${search}` : path;
}

export const commitAddress = (commit) => "/c/" + encodeURIComponent(commit);

addEventListener("popstate", () => (text.value = here()));
if (exported) addEventListener("hashchange", () => (text.value = here()));

// A click on a link of our own changes the address without loading the page again; with a modifier the browser decides.
addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute("download")) return;
  const to = link.getAttribute("href") || "";
  if (!to.startsWith("/") || to.startsWith("//") || to.startsWith("/api/") || to === "/docs") return;
  event.preventDefault();
  go(to);
});
