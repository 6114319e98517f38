// Find in a session: the browser's own search sees only the rows that are elements just now.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, setParams } from "../address.js";
import { html } from "../html.js";
import { Icon } from "../marks.js";
import { ask } from "../server.js";
import { count } from "../words.js";

export function useFind(session, list) {
  const goTo = (n) => list.current?.scrollTo(n);
  const { params } = address.value;
  const [isOpen, setOpen] = useState(Boolean(params.get("q")));
  const [words, setWords] = useState(params.get("q") || "");
  const [found, setFound] = useState({ hits: [], total: 0, words: "" });
  const [at, setAt] = useState(-1);
  const field = useRef(null);
  useEffect(() => {
    const asked = words.trim();
    if (!asked) return void setFound({ hits: [], total: 0, words: "" });
    const stop = new AbortController();
    const later = setTimeout(async () => {
      try {
        const answer = await ask("transcript_find", { session, words: asked }, { signal: stop.signal });
        if (stop.signal.aborted) return;
        setFound({ hits: answer.rows, total: answer.found, words: asked, partly: !answer.complete });
        setAt(answer.rows.length ? 0 : -1);
        if (answer.rows.length && !address.value.params.get("e")) goTo(answer.rows[0]);
      } catch (problem) {
        if (!stop.signal.aborted) setFound({ hits: [], total: 0, words: asked, problem });
      }
    }, 200);
    setParams({ q: asked }, { replace: true });
    return () => (clearTimeout(later), stop.abort());
  }, [words]);
  const step = (by) => {
    if (!found.hits.length) return false;
    const next = (at + by + found.hits.length) % found.hits.length;
    setAt(next);
    goTo(found.hits[next]);
    return true;
  };
  return {
    isOpen, words: isOpen ? words.trim() : "", text: words, setWords, found, at, step, field,
    hits: isOpen ? found.hits : [],
    open: () => (setOpen(true), setTimeout(() => (field.current?.focus(), field.current?.select()))),
    close: () => (setOpen(false), setWords(""), setParams({ q: null }, { replace: true }), list.current?.focus()),
  };
}

export function FindBar({ find }) {
  if (!find.isOpen) return null;
  const { found, at } = find;
  const told = !find.text.trim() ? "" : found.problem ? found.problem.message : found.words !== find.text.trim() ? "…" : found.total ? `${count(at + 1)} of ${count(found.total)}${found.partly ? " or more" : ""}` : "nothing";
  const typed = (event) => {
    if (event.key === "Enter") (event.preventDefault(), find.step(event.shiftKey ? -1 : 1));
    else if (event.key === "Escape") (event.stopPropagation(), find.close());
  };
  return html`<div class="find" role="search">
    <${Icon} name="search" /><input type="text" aria-label="Find in this session" placeholder="Find in this session" value=${find.text} ref=${find.field} onInput=${(event) => find.setWords(event.target.value)} onKeyDown=${typed} />
    <span class="dim sm" aria-live="polite">${told}</span>
    <button class="icon-button" aria-label="Previous hit" onClick=${() => find.step(-1)}><${Icon} name="up" /></button>
    <button class="icon-button" aria-label="Next hit" onClick=${() => find.step(1)}><${Icon} name="down" /></button>
    <button class="icon-button" aria-label="Close" onClick=${find.close}><${Icon} name="close" /></button>
  </div>`;
}
