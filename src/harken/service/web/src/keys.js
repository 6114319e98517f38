// One table of keys. The help, the palette and the tests read it; views say what each does while they are shown.
import { useLayoutEffect, useRef } from "preact/hooks";

/** id, the keys, what it does in words, and where it works. */
export const KEYS = [
  ["palette", ["Ctrl K"], "Search and go anywhere", "Everywhere"],
  ["help", ["?"], "These keys", "Everywhere"],
  ["home", ["g h"], "Home", "Everywhere"],
  ["sessions", ["g s"], "Sessions", "Everywhere"],
  ["commits", ["g c"], "Commits", "Everywhere"],
  ["stats", ["g t"], "Stats", "Everywhere"],
  ["documents", ["g d"], "Documents", "Everywhere"],
  ["theme", ["t"], "Light or dark", "Everywhere"],
  ["close", ["Escape"], "Close what is open, innermost first", "Everywhere"],
  ["next", ["j"], "Next", "Lists"],
  ["previous", ["k"], "Previous", "Lists"],
  ["first", ["g g"], "First", "Lists"],
  ["last", ["G"], "Last", "Lists"],
  ["open", ["Enter", "o"], "Open or unfold", "Lists"],
  ["filter", ["/"], "Find, filter or search", "Lists"],
  ["copy", ["y"], "Copy a link to this", "Lists"],
  ["view1", ["1"], "Transcript", "Session"],
  ["view2", ["2"], "Flow: who said what to whom", "Session"],
  ["view3", ["3"], "Lanes: when each agent did what", "Session"],
  ["view4", ["4"], "Commits of this session", "Session"],
  ["view5", ["5"], "Agents", "Session"],
  ["view6", ["6"], "Raw records", "Session"],
  ["nextPrompt", ["J"], "Next prompt", "Session"],
  ["previousPrompt", ["K"], "Previous prompt", "Session"],
  ["nextError", ["e"], "Next failure", "Session"],
  ["previousError", ["E"], "Previous failure", "Session"],
  ["nextHit", ["n"], "Next hit", "Session"],
  ["previousHit", ["N"], "Previous hit", "Session"],
  ["unfoldAll", ["x"], "Unfold or fold all results", "Session"],
  ["nextSession", ["]"], "Next session", "Session"],
  ["previousSession", ["["], "Previous session", "Session"],
  ["continue", ["c"], "Continue from here", "Session"],
  ["nextAgent", ["l"], "Next agent", "Flow and lanes"],
  ["previousAgent", ["h"], "Previous agent", "Flow and lanes"],
  ["later", ["."], "A moment later", "Flow and lanes"],
  ["earlier", [","], "A moment earlier", "Flow and lanes"],
  ["zoomIn", ["+"], "Zoom in", "Flow and lanes"],
  ["zoomOut", ["-"], "Zoom out", "Flow and lanes"],
  ["fit", ["f"], "All of it", "Flow and lanes"],
  ["markA", ["a"], "Mark as A, to compare", "Commits"],
  ["markB", ["b"], "Mark as B, to compare", "Commits"],
  ["fold", ["z"], "Fold or unfold runs without a prompt", "Commits"],
].map(([id, keys, label, group]) => ({ id, keys, label, group }));

/** By id, the handlers that are shown now; the innermost is asked first. */
const handlers = new Map();

export function runKey(id) {
  return Boolean(handlers.get(id)?.findLast((handler) => handler.current?.() !== false));
}

export const isActive = (id) => Boolean(handlers.get(id)?.length);

/** While a view is shown: `useKeys({ next: () => … })`. A handler that gives `false` has not used the key. */
export function useKeys(table) {
  const held = useRef({});
  for (const [id, run] of Object.entries(table)) (held.current[id] ||= { current: null }).current = run;
  useLayoutEffect(() => {
    const mine = Object.entries(held.current);
    for (const [id, handler] of mine) {
      if (!handlers.has(id)) handlers.set(id, []);
      handlers.get(id).push(handler);
    }
    return () => {
      for (const [id, handler] of mine) {
        const stack = handlers.get(id);
        stack.splice(stack.indexOf(handler), 1);
      }
    };
  }, []);
}

// Keys for a view that is still fetched: it gets them when it is drawn, in the order in which they were typed.
const MOST_KEPT = 64;
const kept = [];
let fetched = 0; // how many views are being fetched

/** From now on keep the keys that nobody takes. Gives what ends that: with `true` the view is there and gets them, with
 * `false` it never comes, and they are dropped. */
export function keepKeys() {
  let isOver = false;
  fetched += 1;
  return (isThere) => {
    if (isOver) return;
    isOver = true;
    fetched -= 1;
    if (isThere) giveKeys();
    else kept.length = 0;
  };
}

/** Nothing else that is typed comes between: all of it happens before the browser tells of another key. */
async function giveKeys() {
  const rendered = async () => {
    for (let turn = 0; turn < 20; turn++) await null;
  };
  await rendered();
  while (kept.length && !fetched) {
    const key = kept.shift();
    const target = document.activeElement || document.body;
    const isFree = target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    if (isFree && isField(target) && key.length === 1) document.execCommand("insertText", false, key);
    if (isFree && isField(target) && key === "Backspace") document.execCommand("delete");
    await rendered();
  }
}

/** Whether a key is kept: one that only the view can take, and all that are typed behind such a one. */
function keeps(...keys) {
  if (!fetched) return false;
  if (kept.length + keys.length <= MOST_KEPT) kept.push(...keys);
  return true;
}

let begun = ""; // the first of two keys, as in "g h"
let forget = 0;

const isField = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

const SCROLLING = /^(Page(Up|Down)|Home|End|Arrow(Up|Down)| )$/;

/** What the keys of the browser scroll while nothing has the focus: the largest of what can be scrolled. */
function mainScroller() {
  const area = (one) => one.clientWidth * one.clientHeight;
  const all = [...document.querySelectorAll("#main, #main :is(.page, .list, .scroll)")].filter((one) => one.scrollHeight > one.clientHeight + 1 && getComputedStyle(one).overflowY !== "visible");
  const found = all.sort((a, b) => area(b) - area(a))[0];
  if (found?.matches("#main, .page")) found.tabIndex = -1;
  return found;
}

addEventListener("keydown", (event) => {
  const key = event.key;
  if (event.ctrlKey || event.metaKey || event.altKey || key === "Escape") kept.length = 0; // whoever does something else
  if ((event.ctrlKey || event.metaKey) && !event.altKey && key.toLowerCase() === "k") {
    if (runKey("palette")) event.preventDefault();
    return;
  }
  if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "f") {
    // The browser cannot find what is not in the list; it may, where the list does not have the focus.
    if (document.activeElement?.closest?.(".list") && runKey("filter")) event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === "Escape") {
    if (runKey("close")) event.preventDefault();
    else if (isField(event.target)) event.target.blur();
    return;
  }
  if (isField(event.target)) return;
  if (document.querySelector("[aria-modal=true]") && key !== "?") return; // what lies below a dialog is not looked at
  if (kept.length && /^(.|Enter|Backspace)$/u.test(key) && keeps(key)) return event.preventDefault();
  if (SCROLLING.test(key) && document.activeElement === document.body) mainScroller()?.focus({ preventScroll: true });
  const isControl = event.target instanceof Element && event.target.closest("button,a,summary,[role=option],[role=slider]");
  if (key === "Enter" && isControl) return;
  const pressed = begun ? `${begun} ${key}` : key;
  const found = KEYS.find((one) => one.keys.includes(pressed));
  begun = "";
  clearTimeout(forget);
  if (found && (runKey(found.id) || keeps(...pressed.split(" ")))) {
    event.preventDefault();
  } else if (!found && KEYS.some((one) => one.keys.some((two) => two.startsWith(key + " ")))) {
    begun = key;
    forget = setTimeout(() => (begun = ""), 900);
  }
});
