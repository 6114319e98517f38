// A view that is fetched when it is first shown.
import { useEffect, useState } from "preact/hooks";
import { html } from "./html.js";
import { AskError, onReturn } from "./server.js";
import { Loading, Problem } from "./states.js";

export function lazily(fetchView) {
  let found = null;
  return (props) => {
    const [state, setState] = useState({ turn: 0, problem: null });
    useEffect(() => {
      if (found) return;
      fetchView().then(
        (view) => ((found = view), setState((before) => ({ ...before, problem: null }))),
        () => setState((before) => ({ ...before, problem: new AskError("gone", "This part of the page could not be fetched", "Is `harken serve` still running?") })),
      );
    }, [state.turn]);
    const again = () => setState((before) => ({ turn: before.turn + 1, problem: null }));
    const isGone = Boolean(state.problem);
    useEffect(() => (isGone ? onReturn(again) : undefined), [isGone]);
    if (found) return html`<${found} ...${props} />`;
    return html`<main id="main" class="page">${state.problem ? html`<${Problem} problem=${state.problem} again=${again} />` : html`<${Loading} what="the view" />`}</main>`;
  };
}
