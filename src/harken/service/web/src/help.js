// The keys, from the table that also runs them.
import { html } from "./html.js";
import { Dialog } from "./dialog.js";

export function Help({ keys, close }) {
  const groups = [...new Set(keys.map((key) => key.group))];
  return html`<${Dialog} label="Keys" class="help" close=${close}>
    <header class="row"><h2 class="grow">Keys</h2><button class="button quiet" onClick=${close}>Close <kbd>Esc</kbd></button></header>
    <div class="help-groups">
      ${groups.map(
        (group) => html`<section><h3>${group}</h3><dl>${keys
          .filter((key) => key.group === group)
          .map((key) => html`<dt>${key.label}</dt><dd>${key.keys.map((one, at) => html`${at ? " or " : ""}${one.split(" ").map((part) => html`<kbd>${part}</kbd>`)}`)}</dd>`)}</dl></section>`,
      )}
    </div>
    <p class="dim sm pad">Single keys do nothing while you type in a field.</p>
  <//>`;
}
