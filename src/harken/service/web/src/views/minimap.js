// The whole session on one narrow strip: what it consists of, where failures and hits are, and what is in sight
// (`view`; nothing while nobody knows how long the session is).
import { useEffect, useRef } from "preact/hooks";
import { html } from "../html.js";

export function Minimap({ outline, total, view, hits, jump }) {
  const canvas = useRef(null);
  useEffect(() => {
    const element = canvas.current;
    if (!element || !outline) return undefined;
    const draw = () => paint(element, outline, total, hits);
    draw();
    const resized = new ResizeObserver(draw);
    resized.observe(element);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => (resized.disconnect(), themed.disconnect());
  }, [outline, total, hits]);
  const press = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    if (event.buttons & 1) jump(Math.floor(((event.clientY - box.top) / box.height) * total));
  };
  const part = (n) => (n / Math.max(1, total)) * 100;
  const inSight = view && { top: `${part(view[0])}%`, height: `${Math.max(0.6, part(view[1] - view[0] + 1))}%` };
  return html`<div class="minimap" aria-hidden="true" onPointerDown=${press} onPointerMove=${press}>
    <canvas ref=${canvas}></canvas>${inSight ? html`<i class="in-sight" style=${inSight}></i>` : null}
  </div>`;
}

function paint(element, outline, total, hits) {
  const scale = devicePixelRatio || 1;
  const width = element.clientWidth;
  const height = element.clientHeight;
  element.width = width * scale;
  element.height = height * scale;
  const pen = element.getContext("2d");
  pen.scale(scale, scale);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name);
  const map = outline.map || outline.strip || "";
  const line = Math.min(8, Math.max(1, height / Math.max(1, map.length) - 0.5)); // of a short session no block, but a mark
  const KINDS = { p: [0, 1, "--ink2"], t: [0.16, 0.4, "--line2"], w: [0.08, 0.75, "--ink3"], r: [0.16, 0.4, "--line2"], c: [0.16, 0.55, "--ink3"], e: [0.16, 0.55, "--accent"], a: [0.16, 0.55, "--a5"], o: [0.16, 0.3, "--line2"], n: [0.16, 0.2, "--line"] };
  for (let at = 0; at < map.length; at++) {
    const found = KINDS[map[at].toLowerCase()];
    if (!found) continue;
    pen.fillStyle = colour(found[2]);
    pen.fillRect(found[0] * width, (at / map.length) * height, found[1] * width, line);
  }
  const mark = (n, name, x, w) => {
    pen.fillStyle = colour(name);
    pen.fillRect(x, (n / total) * height - 1, w, 3);
  };
  for (const one of outline.failures || []) mark(one.n, "--alert", width - 12, 12);
  for (const one of outline.compactions || []) mark(one.n, "--ink", 0, width);
  for (const n of hits || []) mark(n, "--mark2", width - 22, 22);
}
