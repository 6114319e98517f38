// Find in a session: the browser's own search sees only the rows that are elements just now.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { address } from "../address.js";
import { html } from "../html.js";
import { Icon } from "../marks.js";
import { ask } from "../server.js";
import { useTyped } from "../typing.js";
import { count } from "../words.js";

export function useFind(session, list) {
  const goTo = (n) => list.current?.scrollTo(n);
  const [isOpen, setOpen] = useState(Boolean(address.value.params.get("q")));
  const [words, write] = useTyped("q", { heard: (now) => setOpen(Boolean(now)) });
  const [found, setFound] = useState({ hits: [], total: 0, words: "" });
  const [at, setAt] = useState(-1);
  const field = useRef(null);
  const wanted = useRef(false); // the field is to have the keys as soon as it is there
  const focus = () => (field.current.focus(), field.current.select());
  useLayoutEffect(() => {
    if (wanted.current && field.current) (focus(), (wanted.current = false));
  });
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
    return () => (clearTimeout(later), stop.abort());
  }, [words]);
  const step = (by) => {
    if (!found.hits.length) return false;
    const next = (at + by + found.hits.length) % found.hits.length;
    setAt(next);
    goTo(found.hits[next]);
    return true;
  };
  const holds = useMemo(() => new Set(found.hits), [found]);
  // A row that has only some of the words is no hit. Where not all hits are known, whatever has one of the words may be.
  const isEvery = !found.partly && found.total === found.hits.length;
  return {
    isOpen, text: words, write, found, at, step, field,
    wordsIn: (n) => (isOpen && found.total && (!isEvery || holds.has(n)) ? found.words : ""),
    hits: isOpen ? found.hits : [],
    open: () => (field.current ? focus() : setOpen((wanted.current = true))),
    close: () => (setOpen((wanted.current = false)), write(""), list.current?.focus()),
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
    <${Icon} name="search" /><input type="text" aria-label="Find in this session" placeholder="Find in this session" value=${find.text} ref=${find.field} onInput=${(event) => find.write(event.target.value)} onKeyDown=${typed} />
    <span class="dim sm" aria-live="polite">${told}</span>
    <button class="icon-button" aria-label="Previous hit" onClick=${() => find.step(-1)}><${Icon} name="up" /></button>
    <button class="icon-button" aria-label="Next hit" onClick=${() => find.step(1)}><${Icon} name="down" /></button>
    <button class="icon-button" aria-label="Close" onClick=${find.close}><${Icon} name="close" /></button>
  </div>`;
}
