// How many sessions are being written to now. Asked for when the store changes, and once more when the last of them may
// have come to rest: a session runs for as long as the server says, two minutes behind its last word.
import { signal } from "@preact/signals";
import { ask, indexing, isLocal, lackOf, onChanges } from "./server.js";

export const running = signal(0);

const SOON = 400;
const QUIET = 600; // what is looked at comes first
const OFTEN = 5_000;
const LATER = 30_000;

let timer = 0;
let due = 0;
let asked = 0;

function plan(wait) {
  const at = Math.max(Date.now() + wait, asked + OFTEN);
  if (timer && due <= at) return;
  clearTimeout(timer);
  due = at;
  timer = setTimeout(count, at - Date.now());
}

async function count() {
  timer = 0;
  asked = Date.now();
  try {
    running.value = (await ask("sessions_page", { running: true, count: 1 })).total;
  } catch {
    return; // who says that the server is gone is said elsewhere; its feed asks again
  }
  if (lackOf(indexing.value)) plan(SOON);
  else if (running.value) plan(LATER);
}

export function followRunning() {
  if (isLocal()) return;
  onChanges((changes) => {
    if (changes.some((change) => change.kind === "session")) plan(SOON);
  });
  plan(QUIET);
}
