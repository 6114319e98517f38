// What an export carries: the views of one session, without a server. One file, so that it opens from a disk.
import { render } from "preact";
import { signal } from "@preact/signals";
import { html } from "./html.js";
import { KEYS, useKeys } from "./keys.js";
import { Help } from "./help.js";
import { loadExport } from "./export.js";
import { Toast } from "./states.js";
import { nextTheme, useStoredTheme } from "./theme.js";
import { Session } from "./views/session.js";
import "./styles/viewer.css";

const help = signal(false);

function Viewer() {
  useKeys({
    help: () => void (help.value = !help.value),
    theme: nextTheme,
    close: () => (help.value ? void (help.value = false) : false),
  });
  return html`<${Session} /><${Toast} />${help.value ? html`<${Help} keys=${KEYS} close=${() => (help.value = false)} />` : null}`;
}

useStoredTheme();
await loadExport();
render(html`<${Viewer} />`, document.getElementById("app"));
