// An export: the answers lie in the file itself, packed, and nothing is asked of anybody.
import { AskError, answerFrom } from "./server.js";
import { pieces } from "./words.js";

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
    const text = parts.filter(Boolean).join("\n").toLowerCase();
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

/** What an agent said, heard and read until a moment, as the rows tell it. */
function flowKnows(here, request) {
  const rows = flowRows(here, request);
  const until = request.at ? (/^\d+$/.test(request.at) ? Number(request.at) / 1000 : Date.parse(request.at)) : Infinity;
  const known = rows.map((row) => {
    const hearer = row.hearers.find((one) => one.agent === request.agent && one.how !== "blocked");
    const time = row.speaker === request.agent ? row.time : hearer?.time || (hearer ? row.time : null);
    const base = { n: row.n, message_id: row.message_id, how: hearer?.how || "", time };
    if (row.kind !== "spoken") return { ...base, knew: "" };
    if (row.time && Date.parse(row.time) > until) return { ...base, knew: "after", time: null };
    if (!time) return { ...base, knew: "never" };
    if (Date.parse(time) > until) return { ...base, knew: "later" };
    return { ...base, knew: row.speaker === request.agent ? "said" : hearer.how === "result" ? "read" : "heard" };
  });
  const of = (...what) => known.filter((one) => what.includes(one.knew));
  const by = {};
  for (const one of of("said", "heard", "read")) by[rows[one.n].speaker] = (by[rows[one.n].speaker] || 0) + 1;
  const thing = (one) => ({ message_id: one.message_id, speaker: rows[one.n].speaker, text: rows[one.n].text, time: one.time || rows[one.n].time, how: one.how, told: [] });
  const start = request.start || 0;
  return {
    session: here.name, agent: request.agent, name: here.flow.heads.none.columns.find((one) => one.agent === request.agent)?.name || request.agent, at: request.at || null,
    rows: known.slice(start, start + (request.count ?? 100)), total: rows.length, knew: of("said", "heard", "read").length, said: of("said").length, heard: of("heard").length, by,
    changed: of("heard").filter((one) => one.how === "changed").length, missed: of("never").length, tokens: 0,
    newest: of("said", "heard", "read").slice(-20).reverse().map(thing), unknown: of("never").slice(-20).reverse().map(thing), ref: "",
  };
}
