// What home, sessions and stats share: the price of a session, a button that continues it, what changed in the store.
import { useEffect, useRef, useState } from "preact/hooks";
import { go, sessionAddress } from "../address.js";
import { html } from "../html.js";
import { useKeys } from "../keys.js";
import { Icon, Strip } from "../marks.js";
import { ask, onChanges } from "../server.js";
import { money, pathEnd } from "../words.js";
import { Continue } from "./continue.js";

/** What it cost: at list price, else as its program said; "" where nobody knows. */
export function priceOf(one) {
  const known = one.price_usd_micros ?? one.cost_usd_micros;
  if (known === null || known === undefined) return "";
  return (one.price_usd_micros !== null && one.unpriced?.length ? "≥ " : "") + money(known);
}

/** Opens the dialog that continues a session. The page of the session is asked for when somebody wants it. */
export function ContinueButton({ session, primary = false, children = "Continue" }) {
  const [page, setPage] = useState(null);
  const [waiting, setWaiting] = useState(false);
  const open = async () => {
    setWaiting(true);
    try {
      setPage(await ask("session_page", { session }));
    } catch {
      go(sessionAddress(session)); // which says what is wrong with it
    } finally {
      setWaiting(false);
    }
  };
  return html`<button class=${"button" + (primary ? " primary" : "")} disabled=${waiting} aria-haspopup="dialog" onClick=${open}><${Icon} name="play" />${children}</button>
    ${page ? html`<${Continuing} page=${page} close=${() => setPage(null)} />` : null}`;
}

function Continuing({ page, close }) {
  useKeys({ close });
  return html`<${Continue} page=${page} record="" close=${close} />`;
}

/** Call `hear` when sessions have changed: soon, and at most every so many milliseconds. */
export function useChanges(hear, every = 2000) {
  const latest = useRef(hear);
  latest.current = hear;
  useEffect(() => {
    let waiting = 0;
    let told = 0;
    const tell = () => {
      waiting = 0;
      told = Date.now();
      latest.current();
    };
    const stop = onChanges((changes) => {
      if (waiting || !changes.some((change) => change.kind === "session" || change.kind === "eviction")) return;
      waiting = setTimeout(tell, Math.max(150, told + every - Date.now()));
    });
    return () => (stop(), clearTimeout(waiting));
  }, []);
}

/** Draw again from time to time: "4 s ago" does not stay true. */
export function useTicks(every = 30_000) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || tick((n) => n + 1), every);
    return () => clearInterval(timer);
  }, []);
}

/** Whether the window is at least so wide. */
export function useWide(pixels) {
  const [wide, setWide] = useState(() => matchMedia(`(min-width: ${pixels}px)`).matches);
  useEffect(() => {
    const query = matchMedia(`(min-width: ${pixels}px)`);
    const changed = () => setWide(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, [pixels]);
  return wide;
}

/** The strip of a session at its own length: one of few steps is short, not wide. */
export const OwnStrip = ({ letters, most = 66 }) =>
  letters ? html`<div class="own-strip" style=${{ width: `${Math.min(100, (100 * letters.length) / most)}%` }}><${Strip} letters=${letters} width=${letters.length * 3.4} /></div>` : null;

/** The last part of a path; two where another of these is called the same. */
export const nameAmong = (path, all) => pathEnd(path, all.filter((other) => pathEnd(other) === pathEnd(path)).length > 1 ? 2 : 1);
