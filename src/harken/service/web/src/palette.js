// Ctrl K: search everything, go anywhere, do anything that has a key.
import { useEffect, useRef, useState } from "preact/hooks";
import { commitAddress, go, sessionAddress } from "./address.js";
import { html } from "./html.js";
import { KEYS, isActive, runKey } from "./keys.js";
import { Dialog } from "./dialog.js";
import { Icon, RuntimeMark } from "./marks.js";
import { ask, askMany } from "./server.js";
import { ago, pathEnd, shown } from "./words.js";

const WAIT = 150;

export function Palette({ close }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState({ sessions: [], hits: [], asked: "" });
  const [picked, pick] = useState(""); // by what it is: answers that come put others before it
  const list = useRef(null);
  useEffect(() => {
    const asked = words.trim();
    const stop = new AbortController();
    const later = setTimeout(async () => {
      const quietly = (promise) => promise.catch(() => null);
      const [sessions, hits] = await Promise.all([
        quietly(ask("sessions_page", { match: asked, count: 6 }, { signal: stop.signal })),
        asked.length > 1 ? quietly(askMany("search", { query: asked, limit: 12 }, { signal: stop.signal })) : null,
      ]);
      if (!stop.signal.aborted) setFound({ sessions: sessions?.rows || [], hits: (hits || []).filter((hit) => hit.session), asked });
    }, asked ? WAIT : 0);
    return () => (clearTimeout(later), stop.abort());
  }, [words]);

  const options = choices(words.trim(), found);
  const chosen = Math.max(0, options.findIndex((option) => keyOf(option) === picked));
  const run = (option) => {
    close();
    option.run();
  };
  const typed = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && options.length) (event.preventDefault(), pick(keyOf(options[(chosen + step + options.length) % options.length])));
    else if (event.key === "Enter" && options[chosen]) (event.preventDefault(), run(options[chosen]));
  };
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [chosen]);
  return html`<${Dialog} label="Search and go" class="palette" close=${close}>
    <div class="palette-field"><${Icon} name="search" /><input autofocus type="text" role="combobox" aria-expanded="true" aria-controls="choices" aria-activedescendant=${options.length ? "choice-" + chosen : null} aria-label="Search prompts, answers, commands, files, ids" placeholder="Search, or name a session, a commit or what to do" value=${words} onInput=${(event) => (setWords(event.target.value), pick(""))} onKeyDown=${typed} /></div>
    <div class="palette-list" id="choices" role="listbox" aria-label="Choices" ref=${list}>
      ${options.map(
        (option, n) => html`${option.group && option.group !== options[n - 1]?.group ? html`<div class="palette-group" role="presentation">${option.group}</div>` : null}
          <div id=${"choice-" + n} class="palette-option" role="option" aria-selected=${n === chosen ? "true" : "false"} onClick=${() => run(option)} onMouseMove=${() => n !== chosen && pick(keyOf(option))}>
            ${option.mark}<span class="cut">${option.words}${option.more ? html`<span class="dim"> ${option.more}</span>` : null}</span>${option.end ? html`<span class="dim xs">${option.end}</span>` : null}
          </div>`,
      )}
      ${options.length ? null : html`<p class="pad dim">${found.asked === words.trim() ? "Nothing found. Fewer or other words may help." : "Searching"}</p>`}
    </div>
    <footer class="palette-foot"><span><kbd>↑</kbd> <kbd>↓</kbd> choose</span><span><kbd>Enter</kbd> open</span><span><kbd>Esc</kbd> close</span></footer>
  <//>`;
}

const keyOf = (option) => [option.group, option.words, option.more, option.end, option.to].join("\n");

/** What can be chosen, the most likely first. */
function choices(words, { sessions, hits }) {
  const options = [];
  const lower = words.toLowerCase();
  if (/^(ctx-)?[0-9a-f]{4,64}$/i.test(words)) options.push({ group: "Go to", mark: html`<${Icon} name="branch" />`, words: "Commit " + words, run: () => go(commitAddress(words)) });
  if (words) options.push({ group: "Go to", mark: html`<${Icon} name="search" />`, words: `Search everything for “${shown(words)}”`, run: () => go("/search?q=" + encodeURIComponent(words)) });
  for (const one of sessions) {
    options.push({ group: "Sessions", mark: html`<${RuntimeMark} runtime=${one.runtime} bare />`, words: shown(one.title) || one.short, more: shown(pathEnd(one.project)), end: ago(one.active), to: one.session, run: () => go(sessionAddress(one.session)) });
  }
  for (const hit of hits) {
    options.push({ group: "Said and done", mark: html`<${Icon} name=${hit.role === "call" || hit.role === "result" ? "command" : "thought"} />`, words: shown(hit.snippet?.replace(/\s+/g, " ").trim()), end: hit.role, to: hit.message_id, run: () => go(sessionAddress(hit.session, { record: hit.message_id || "" })) });
  }
  for (const key of KEYS) {
    if (!isActive(key.id) || key.id === "palette" || key.id === "close" || (lower && !key.label.toLowerCase().includes(lower))) continue;
    options.push({ group: "Do", mark: html`<${Icon} name="right" />`, words: key.label, end: key.keys[0], run: () => setTimeout(() => runKey(key.id)) });
  }
  return options;
}
