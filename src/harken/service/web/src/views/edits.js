// What a call changes in files, whatever its runtime calls that: pieces of text before and after, or a whole new text.

const text = (value) => (typeof value === "string" ? value : null);
const afterOf = (one) => text(one?.new_string) ?? text(one?.newString) ?? text(one?.newText) ?? text(one?.new_str);
const beforeOf = (one) => text(one?.old_string) ?? text(one?.oldString) ?? text(one?.oldText) ?? text(one?.old_str) ?? "";

/** `[{ before, after, path }]`; empty where nothing of the kind is given. */
export function changesOf(input) {
  if (!input || typeof input !== "object") return [];
  const patch = [input.patchText, input.patch, input.input].map(text).find((one) => one?.includes("*** Begin Patch"));
  if (patch) return patchedBy(patch);
  const path = text(input.file_path) ?? text(input.filePath) ?? text(input.path) ?? "";
  const given = Array.isArray(input.edits) ? input.edits : [input];
  return given.filter((one) => afterOf(one) !== null).map((one) => ({ before: beforeOf(one), after: afterOf(one), path }));
}

/** The text of a file that is written as a whole; null where there is none. */
export const writtenBy = (input) => text(input?.content) ?? text(input?.file_text);

/** The pieces of a patch as Codex and others write it: a file, then lines that begin with a space, + or -. */
function patchedBy(patch) {
  const found = [];
  let path = "";
  let piece = null;
  for (const line of patch.split("\n")) {
    const file = /^\*\*\* (?:Add|Update|Delete) File: (.*)$/.exec(line);
    if (file) path = file[1];
    if (line.startsWith("***") || line.startsWith("@@")) piece = null;
    else if (/^[ +-]/.test(line)) {
      if (!piece) found.push((piece = { before: [], after: [], path }));
      if (line[0] !== "+") piece.before.push(line.slice(1));
      if (line[0] !== "-") piece.after.push(line.slice(1));
    }
  }
  return found.map((one) => ({ ...one, before: one.before.join("\n"), after: one.after.join("\n") }));
}
