// A view that is fetched when it is first shown, or when nothing else is to be done.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { html } from "./html.js";
import { keepKeys } from "./keys.js";
import { AskError, askGrants, onReturn } from "./server.js";
import { Loading, Problem } from "./states.js";

const rest = [];

/** Fetch what nobody has asked for yet, one after the other, so that nobody who asks waits for it. */
export async function fetchRest() {
  for (const fetchOne of rest.splice(0)) await fetchOne().catch(() => {}); // whoever asks for it tries again
}

/** Why a part of the page could not be fetched. A server that answers and has it not is another version than the page. */
const whyGone = async () =>
  (await askGrants()) === "gone"
    ? new AskError("gone", "This part of the page could not be fetched", "Is `harken serve` still running?")
    : new AskError("old", "A part of it could not be fetched: the server may have another version since an upgrade", "You stay where you are");

const asPage = (content) => html`<main id="main" class="page">${content}</main>`;

/** The view that `fetchView` promises. `frame` is put around what is shown until it is there, and gets what the view
 * gets. */
export function lazily(fetchView, frame = asPage) {
  let found = null;
  const get = () => fetchView().then((view) => (found = view));
  rest.push(get);
  return (props) => {
    const [state, setState] = useState({ turn: 0, problem: null });
    useEffect(() => {
      if (found) return;
      get().then(
        () => setState((before) => ({ ...before, problem: null })),
        () => whyGone().then((problem) => setState((before) => ({ ...before, problem }))),
      );
    }, [state.turn]);
    const endKeys = useRef(null);
    const isThere = Boolean(found);
    useLayoutEffect(() => {
      if (isThere || state.problem) endKeys.current?.(isThere);
      else endKeys.current = keepKeys();
    }, [isThere, state.problem]);
    useLayoutEffect(() => () => endKeys.current?.(false), []);
    const again = () => setState((before) => ({ turn: before.turn + 1, problem: null }));
    const isGone = state.problem?.code === "gone";
    useEffect(() => (isGone ? onReturn(again) : undefined), [isGone]);
    if (found) return html`<${found} ...${props} />`;
    return frame(state.problem ? html`<${Problem} problem=${state.problem} again=${again} />` : html`<${Loading} what="the view" />`, props);
  };
}
