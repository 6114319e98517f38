// A list that opens below its button. Escape and a click elsewhere close it, and nothing else on the way.
import { useEffect, useRef } from "preact/hooks";
import { html } from "../html.js";

export function Chooser({ summary, label, children }) {
  const box = useRef(null);
  useEffect(() => {
    const elsewhere = (event) => box.current?.open && !box.current.contains(event.target) && (box.current.open = false);
    addEventListener("pointerdown", elsewhere);
    return () => removeEventListener("pointerdown", elsewhere);
  }, []);
  const keys = (event) => {
    if (event.key !== "Escape" || !box.current.open) return;
    event.stopPropagation();
    box.current.open = false;
    box.current.querySelector("summary").focus();
  };
  return html`<details class="chooser" ref=${box} onKeyDown=${keys}>${summary}
    <div class="chooser-list" role="group" aria-label=${label}>${children}</div></details>`;
}
