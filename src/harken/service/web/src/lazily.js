// A view that is fetched when it is first shown, or when nothing else is to be done.
import { useEffect, useState } from "preact/hooks";
import { html } from "./html.js";
import { AskError, onReturn } from "./server.js";
import { Loading, Problem } from "./states.js";

const rest = [];

/** Fetch what nobody has asked for yet, one after the other, so that nobody who asks waits for it. */
export async function fetchRest() {
  for (const fetchOne of rest.splice(0)) await fetchOne().catch(() => {}); // whoever asks for it tries again
}

const asPage = (content) => html`<main id="main" class="page">${content}</main>`;

/** The view that `fetchView` promises. `frame` is put around what is shown until it is there. */
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
        () => setState((before) => ({ ...before, problem: new AskError("gone", "This part of the page could not be fetched", "Is `harken serve` still running?") })),
      );
    }, [state.turn]);
    const again = () => setState((before) => ({ turn: before.turn + 1, problem: null }));
    const isGone = Boolean(state.problem);
    useEffect(() => (isGone ? onReturn(again) : undefined), [isGone]);
    if (found) return html`<${found} ...${props} />`;
    return frame(state.problem ? html`<${Problem} problem=${state.problem} again=${again} />` : html`<${Loading} what="the view" />`);
  };
}
