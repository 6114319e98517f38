// A store with nothing in it, and what to do about that.
import { html } from "../html.js";
import { RuntimeMark } from "../marks.js";
import { Command, State, useAnswer } from "../states.js";
import { askMany } from "../server.js";
import { runtimeName } from "../words.js";

export function EmptyStore() {
  const [found] = useAnswer("runtimes", {}, { many: askMany });
  const known = [...new Map((found || []).filter((one) => one.can?.includes("import")).map((one) => [runtimeName(one.name), one.name])).values()];
  return html`<${State} title="Nothing heard yet">
    <p>Harken reads the sessions that your agents keep on this machine, and shows here what they did, said, heard and cost. Nothing is copied anywhere else.</p>
    <div class="empty-steps">
      <${Command} text="harken import" />
      <p class="dim sm">takes in what is there now. Without <code>--no-watch</code>, <code>harken serve</code> does this by itself and goes on with it.</p>
      <${Command} text="harken import FILE-OR-FOLDER" />
      <p class="dim sm">takes in sessions from anywhere else: another machine's, or a backup's.</p>
    </div>
    ${known.length ? html`<p class="dim sm empty-known">Harken reads ${known.map((name) => html`<${RuntimeMark} runtime=${name} /> `)}</p>` : null}
  <//>`;
}
