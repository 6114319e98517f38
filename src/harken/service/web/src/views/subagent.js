// A sub-agent inside the transcript of the one that asked for it: what it was told, what it did, what it gave back.
import { useState } from "preact/hooks";
import { sessionAddress } from "../address.js";
import { html } from "../html.js";
import { Strip } from "../marks.js";
import { ask } from "../server.js";
import { useAnswer } from "../states.js";
import { plural, shown } from "../words.js";
import { Row } from "./rows.js";

const SHOWN = 20;

export function SubAgent({ call }) {
  const [open, setOpen] = useState(false);
  const [outline] = useAnswer("transcript_outline", { session: call.session }, { key: call.session });
  const [page] = useAnswer("session_page", { session: call.session }, { key: call.session, skip: !open });
  const [rows, setRows] = useState(null);
  const unfold = async () => {
    setOpen(!open);
    if (!rows) setRows((await ask("transcript", { session: call.session, start: 0, count: SHOWN })).rows);
  };
  // What it was told first is above, in the call; alone, that mark would look like a letter.
  const steps = outline ? outline.strip.replace(/^p/, "") : "";
  return html`<div class="subagent">
    ${outline ? html`<button class="subagent-head" aria-expanded=${open ? "true" : "false"} onClick=${unfold}><${Strip} letters=${steps} width=${Math.min(180, steps.length * 8)} /><span class="dim sm">${plural(outline.strip.replace(/[p|]/g, "").length, "call")}</span><span class="link sm">${open ? "fold" : "what it did"}</span></button>` : null}
    ${open && rows && page ? html`<div class="subagent-rows">${rows.map((row) => html`<${Row} key=${row.n} row=${row} page=${page} select=${() => {}} />`)}</div>` : null}
    <a class="link sm" href=${sessionAddress(call.session)}>Open its transcript${outline && outline.total > SHOWN ? ` (${outline.total} rows)` : ""}</a>
    ${call.agent_name ? html` <span class="dim sm">${shown(call.agent_name)}</span>` : null}
  </div>`;
}
