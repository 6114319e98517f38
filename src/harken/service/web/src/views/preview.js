// A session at a glance, beside the list.
import { useEffect, useState } from "preact/hooks";
import { sessionAddress } from "../address.js";
import { html } from "../html.js";
import { Icon, RuntimeMark } from "../marks.js";
import { ask } from "../server.js";
import { clock, count, day, duration, few, modelName, pathEnd, plural, shown } from "../words.js";
import { ContinueButton, OwnStrip, priceOf } from "./pieces.js";

const WAIT = 120;
const TAIL = 40;

/** What is shown of a session: its page, its outline and its last words, each as soon as it is there. */
function useGlance(session) {
  const [found, setFound] = useState({ session: "" });
  useEffect(() => {
    if (!session) return undefined;
    const stop = new AbortController();
    const keep = (part) => stop.signal.aborted || setFound((before) => ({ ...(before.session === session ? before : { session }), ...part }));
    const get = (operation, request) => ask(operation, request, { signal: stop.signal });
    const later = setTimeout(async () => {
      const quietly = (promise) => promise.catch((problem) => (problem.name === "AbortError" ? null : keep({ problem })));
      await Promise.all([
        quietly(get("session_page", { session }).then((page) => keep({ page }))),
        quietly(get("transcript_outline", { session, strip: 160 }).then((outline) => keep({ outline }))),
        quietly(get("transcript", { session, start: -TAIL, count: TAIL }).then(({ rows }) => keep({ last: rows.findLast((row) => row.kind === "answer" && row.text.trim()) || null }))),
      ]);
    }, WAIT);
    return () => (clearTimeout(later), stop.abort());
  }, [session]);
  return found;
}

export function Preview({ session, row }) {
  const { page, outline, last, problem, session: known } = useGlance(session);
  if (!session) return html`<aside class="preview side" aria-label="The chosen session"></aside>`;
  if (!page || known !== session) return html`<aside class="preview side" aria-label="The chosen session" aria-busy=${problem && known === session ? "false" : "true"}><section>${problem && known === session ? html`<p class="dim">${problem.message}</p>` : null}</section></aside>`;
  const took = page.started && page.ended ? (new Date(page.ended) - new Date(page.started)) / 1000 : null;
  const models = Object.keys(page.figures?.models || {}).filter(Boolean).map(modelName);
  return html`<aside class="preview side" aria-label="The chosen session">
    <section>
      <h2 class="preview-title cut2" title=${shown(page.title)}><a href=${sessionAddress(page.session)}>${shown(page.title || page.short)}</a></h2>
      <p class="dim sm">${[page.project && shown(pathEnd(page.project)), page.started && `${day(page.started)}, ${clock(page.started)}${page.ended ? ` to ${day(page.ended) === day(page.started) ? "" : day(page.ended) + " "}${clock(page.ended)}` : ""}`, shown(models.slice(0, 2).join(", "))].filter(Boolean).join(" · ")}</p>
      ${outline?.strip ? html`<div class="preview-strip"><${OwnStrip} letters=${outline.strip} most=${80} /></div><${Legend} strip=${outline.strip} />` : null}
      <div class="row preview-actions">${page.resumable ? html`<${ContinueButton} key=${page.session} session=${page.session} primary />` : null}<a class="button" href=${sessionAddress(page.session)}>Open <kbd>↵</kbd></a><a class="button" href=${sessionAddress(page.session, { view: "commits" })}><${Icon} name="branch" />Commits</a></div>
    </section>
    <${Words} page=${page} outline=${outline} last=${last} />
    <section><h2>At a glance</h2><dl class="pairs">
      <dt>Program</dt><dd><${RuntimeMark} runtime=${page.runtime} /></dd>
      ${took ? html`<dt>Took</dt><dd>${duration(took)}</dd>` : null}
      ${priceOf(page) ? html`<dt>Cost</dt><dd>${priceOf(page)}</dd>` : null}
      <${Figures} page=${page} outline=${outline} row=${row} />
      ${page.continues ? html`<dt>Goes on from</dt><dd class="cut"><a class="link" href=${sessionAddress(page.continues)}>${shown(page.continues.slice(0, 8))}</a></dd>` : null}
      ${page.continued_by?.length ? html`<dt>Continued in</dt><dd class="cut"><a class="link" href=${sessionAddress(page.continued_by[0])}>${shown(page.continued_by[0].slice(0, 8))}</a>${page.continued_by.length > 1 ? ` +${page.continued_by.length - 1}` : ""}</dd>` : null}
    </dl></section>
    <${Files} page=${page} outline=${outline} />
  </aside>`;
}

/** Calls are those of the sub-agents, too, as in the list and in Agents. Where the list has not come to the session, all
 * that failed in its transcript and was no error of the program was a call. */
function Figures({ page, outline, row }) {
  const f = page.figures || {};
  const calls = row?.calls ?? (page.agents || []).reduce((sum, agent) => sum + (agent.calls || 0), 0);
  const failed = row?.failed ?? Math.max(0, (outline?.counts?.failures || 0) - (f.errors || 0));
  const tokens = f.tokens || {};
  const given = (tokens.input || 0) + (tokens.cache_read || 0) + (tokens.cache_write || 0);
  const below = (page.agents || []).slice(1);
  return html`
    ${calls ? html`<dt>Calls</dt><dd>${count(calls)}${failed ? html` <span class="alert">${count(failed)} failed</span>` : null}</dd>` : null}
    ${below.length ? html`<dt>Agents</dt><dd class="cut"><a class="link" href=${sessionAddress(page.session, { view: "agents" })}>${plural(below.length, "sub-agent")}</a></dd>` : null}
    ${given ? html`<dt>Tokens</dt><dd>${few(given)} in, ${few(tokens.output || 0)} out</dd>` : null}
    ${given && tokens.cache_read ? html`<dt>From the cache</dt><dd>${Math.round((100 * tokens.cache_read) / given)} %</dd>` : null}
    ${f.compactions ? html`<dt>Compactions</dt><dd>◆ ${count(f.compactions)}</dd>` : null}
    ${page.changed ? html`<dt>Changed on the way</dt><dd class="alert"><a class="link" href=${sessionAddress(page.session, { view: "flow" })}>≠ ${plural(page.changed, "message")}</a></dd>` : null}
  `;
}

function Words({ page, outline, last }) {
  const first = outline?.prompts?.[0];
  if (!first && !last) return null;
  return html`<section><h2>First and last words</h2>
    ${first ? html`<blockquote class="quote you"><p class="quote-text">${shown(first.text)}</p><footer class="dim xs">You${page.started ? ", " + clock(page.started) : ""}</footer></blockquote>` : null}
    ${last ? html`<blockquote class="quote"><p class="quote-text">${shown(last.text)}</p><footer class="xs"><a class="link" href=${sessionAddress(page.session, { record: last.index ? `${last.id}.${last.index}` : last.id })}>${shown(last.who) || "Answer"}${last.time ? ", " + clock(last.time) : ""}</a></footer></blockquote>` : null}
  </section>`;
}

function Files({ page, outline }) {
  const changed = (outline?.files || []).filter((file) => file.ops.edit || file.ops.write || file.ops.delete);
  if (!changed.length) return null;
  return html`<section><h2>Files changed <span class="dim">${count(changed.length)}</span></h2><ul class="preview-files">${changed.slice(0, 6).map((file) => html`<li title=${shown(file.path)}><${Icon} name="edit" /><span class="cut">${shown(pathEnd(file.path, 2))}</span><span class="dim xs">×${(file.ops.edit || 0) + (file.ops.write || 0) + (file.ops.delete || 0)}</span></li>`)}</ul>
    ${changed.length > 6 ? html`<a class="link sm" href=${sessionAddress(page.session)}>${changed.length - 6} more</a>` : null}</section>`;
}

const KINDS = [["r", "read"], ["c", "command"], ["e", "edit"], ["a", "agent"]];

export function Legend({ strip }) {
  const there = KINDS.filter(([letter]) => strip.toLowerCase().includes(letter));
  return html`<p class="legend dim xs" aria-hidden="true">${there.map(([, name]) => html`<span><i class=${"of-" + name}></i>${name}</span>`)}${/[RCEAO]/.test(strip) ? html`<span><i class="of-failed"></i>failed</span>` : null}${strip.includes("|") ? html`<span><i class="of-fold"></i>compaction</span>` : null}</p>`;
}
