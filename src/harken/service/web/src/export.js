// An export: the answers lie in the file itself, packed, and nothing is asked of anybody.
import { AskError, answerFrom } from "./server.js";
import { toInstant, toMicros } from "./views/instants.js";
import { pieces, plain } from "./words.js";

/** Where the page is an export, have its answers come from the data in it. */
export async function loadExport() {
  const element = document.getElementById("harken-data");
  if (!element) return;
  const packed = Uint8Array.from(atob(element.textContent.trim()), (letter) => letter.charCodeAt(0));
  element.remove();
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = JSON.parse(await new Response(stream).text());
  answerFrom(async (operation, request) => answer(data, operation, request));
}

const absent = (what) => new AskError("not_found", what, "`harken export` wrote this file from a store that may have it");

/** What the file has of the session that a request names; without a name, or one it does not know at the start, its own. */
function held(data, session) {
  const name = !session || session === "export" ? data.main : session;
  const found = data.sessions[name];
  if (!found) throw absent("This session is not part of the file");
  return { name, rows: data.rows[name], ...found };
}

function answer(data, operation, request) {
  const here = held(data, request.session);
  const start = Math.max(0, request.start || 0);
  switch (operation) {
    case "transcript":
      return { ...here.transcript, start, rows: here.rows.slice(start, start + (request.count ?? 200)) };
    case "transcript_place":
      return { ...here.transcript, n: placeOf(here.rows, request) };
    case "transcript_row":
      return here.rows[request.n ?? placeOf(here.rows, request)];
    case "transcript_find":
      return wordsIn(here.rows, request);
    case "flow_page":
      return flowPage(here, request);
    case "flow_knows":
      return flowKnows(here, request);
    case "flow_place": {
      const n = flowRows(here, request).findIndex((row) => isAbout(row, request.message));
      if (n < 0) throw absent("Nobody said this");
      return { n };
    }
    default:
      if (operation in here) return here[operation];
      throw absent("This is not part of the file");
  }
}

function placeOf(rows, { id, index = 0 }) {
  const at = rows.findIndex((row) => row.id === id && row.index === index);
  const near = at >= 0 ? at : rows.findIndex((row) => row.id === id);
  if (near < 0) throw absent("There is no such record in this file");
  return near;
}

function wordsIn(all, request) {
  const words = pieces(request.words || "");
  const rows = [];
  for (const row of all) {
    const parts = [row.text, row.title, row.call?.what, row.call?.result, row.call && JSON.stringify(row.call.input)];
    const text = plain(parts.filter(Boolean).join("\n"));
    if (words.length && words.every((word) => text.includes(word))) rows.push(row.n);
  }
  return { rows: rows.slice(0, request.limit || 2000), found: rows.length, complete: true };
}

// -- flow: every row lies in the file once; a level and a choice of agents are made of it here ---

const chosen = new Map();

function flowRows(here, { tools = "none", agents = [] }) {
  if (!here.flow) throw absent("The flow of this session is not part of the file");
  const key = JSON.stringify([here.name, tools, agents]);
  if (!chosen.has(key)) {
    const kinds = here.flow.levels[tools] || [];
    const wanted = new Set(agents);
    const rows = here.flow.rows.filter((row) => (!kinds.length || kinds.includes(row.kind)) && (!wanted.size || wanted.has(row.speaker) || row.hearers.some((one) => wanted.has(one.agent))));
    chosen.set(key, rows.map((row, n) => ({ ...row, n })));
  }
  return chosen.get(key);
}

const isAbout = (row, message) => row.message_id === message || row.hearers.some((one) => one.message_id === message);

function flowPage(here, request) {
  const rows = flowRows(here, request);
  const start = request.start || 0;
  const head = here.flow.heads[request.tools || "none"];
  const places = new Map(rows.map((row) => [row.message_id, row.n]));
  const all = here.flow.rows.filter((row) => row.time);
  const moments = request.agents?.length
    ? rows.filter((row) => row.kind === "spoken" && row.time).slice(0, 1000).map((row) => [Date.parse(row.time) * 1000, places.get(row.message_id), row.speaker, ""])
    : head.moments;
  return { ...head, start, total: rows.length, moments, first: head.first || all[0]?.time || null, rows: rows.slice(start, start + (request.count ?? 100)) };
}

/** What an agent said, heard and read until a moment, as the service tells it. */
function flowKnows(here, request) {
  const until = !request.at ? Infinity : /^\d+$/.test(request.at) ? Number(request.at) : toMicros(request.at);
  const at = (time) => (time ? toMicros(time) : 0);
  const happened = new Map(); // no row is earlier than the one before it, whatever its clock said
  let latest = 0;
  for (const row of here.flow.rows) happened.set(row.message_id + row.kind, (latest = Math.max(latest, at(row.time))));
  const knowing = (row, n) => {
    const when = happened.get(row.message_id + row.kind);
    const hearer = row.hearers.find((one) => one.agent === request.agent && one.how !== "blocked");
    const isOwn = row.speaker === request.agent;
    const time = isOwn ? row.time : hearer ? hearer.time || row.time : null;
    const came = isOwn || !hearer ? when : Math.max(when, at(time));
    const isThere = isOwn || (hearer && came <= until);
    const knew = when > until ? "after" : isOwn ? "said" : row.kind !== "spoken" && !row.hearers.length ? "" : isThere ? (hearer.how === "result" ? "read" : "heard") : hearer ? "later" : "never";
    return { n, row, came, message_id: row.message_id, knew, how: isThere && !isOwn ? hearer.how : "", heard: hearer?.heard || "", time: knew === "after" ? null : time };
  };
  const shown = flowRows(here, request).map(knowing);
  const spoken = here.flow.rows.filter((row) => row.kind === "spoken").map(knowing); // whatever is shown, all of it counts
  const of = (...what) => spoken.filter((one) => what.includes(one.knew));
  const known = of("said", "heard", "read").sort((a, b) => a.came - b.came);
  const missed = of("never", "later");
  const by = {};
  for (const { row } of known) by[row.speaker] = (by[row.speaker] || 0) + 1;
  const own = of("said").length;
  const last = here.flow.rows.flatMap((row) => [row, ...row.hearers]).map((one) => at(one.time)).filter((time) => time && time <= until).reduce((a, b) => Math.max(a, b), 0);
  const start = request.start || 0;
  return {
    session: here.name, agent: request.agent, name: here.flow.heads.none.columns.find((one) => one.agent === request.agent)?.name || request.agent, at: last ? toInstant(last) : null,
    rows: shown.slice(start, start + (request.count ?? 100)).map(({ row, heard, came, ...one }) => one), total: shown.length,
    knew: known.length, said: own, heard: known.length - own, by: Object.fromEntries(Object.entries(by).sort((a, b) => b[1] - a[1])),
    changed: known.filter((one) => one.how === "changed").length, missed: missed.length,
    tokens: Math.floor(known.reduce((sum, { row, heard }) => sum + [...(heard || row.text)].length + row.cut, 0) / 4),
    newest: known.slice(-20).reverse().map(({ row, ...one }) => ({ message_id: one.message_id, speaker: row.speaker, text: one.heard || row.text, time: one.time, how: one.how || "said", told: [] })),
    unknown: missed.slice(-20).reverse().map(({ row }) => ({ message_id: row.message_id, speaker: row.speaker, text: row.text, time: row.time, how: row.hearers.some((one) => one.agent === request.agent && one.how === "blocked") ? "blocked" : "", told: [...new Set(row.hearers.filter((one) => one.how !== "blocked").map((one) => one.agent))] })),
    ref: "",
  };
}
