// Something that lies over the page and has the focus until it is closed.
import { useLayoutEffect, useRef } from "preact/hooks";
import { html } from "./html.js";

export function Dialog({ label, close, children, class: name = "" }) {
  const box = useRef(null);
  // Before the next key comes, which is meant for what is open now.
  useLayoutEffect(() => {
    const before = document.activeElement;
    if (!box.current.contains(document.activeElement)) (box.current.querySelector("[autofocus],input,button,a") || box.current).focus();
    return () => before?.focus?.({ preventScroll: true });
  }, []);
  const stay = (event) => {
    if (event.key === "Escape") return void (event.preventDefault(), event.stopPropagation(), close());
    if (event.key !== "Tab") return undefined;
    const inside = [...box.current.querySelectorAll("a[href],button,input,select,textarea,[tabindex='0']")].filter((one) => one.offsetParent);
    const [first, last] = [inside[0], inside.at(-1)];
    if (event.shiftKey && document.activeElement === first) (event.preventDefault(), last?.focus());
    else if (!event.shiftKey && document.activeElement === last) (event.preventDefault(), first?.focus());
    return undefined;
  };
  return html`<div class="veil" onClick=${(event) => event.target === event.currentTarget && close()}>
    <div class=${"dialog " + name} role="dialog" aria-modal="true" aria-label=${label} tabindex="-1" ref=${box} onKeyDown=${stay}>${children}</div>
  </div>`;
}
