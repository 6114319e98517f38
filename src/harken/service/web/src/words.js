// Times, sizes and names in words. Times are the reader's own, and the page says so. Dates and numbers are written in
// English, as all else is: a browser needs 15 ms to get its own formats ready, and the first rows wait for them.

const HOUR = 3600;
const DAY = 24 * HOUR;

export function timeOf(text) {
  const time = new Date(text || NaN);
  return Number.isNaN(time.getTime()) ? null : time;
}

/** 4 s, 12 min, 3 h 30 min, 2 d */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "";
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return seconds < 10 && seconds % 1 ? `${seconds.toFixed(1)} s` : `${s} s`;
  if (s < HOUR) return `${Math.floor(s / 60)} min` + (s < 600 && s % 60 ? ` ${s % 60} s` : "");
  if (s < DAY) return `${Math.floor(s / HOUR)} h` + (Math.floor((s % HOUR) / 60) ? ` ${Math.floor((s % HOUR) / 60)} min` : "");
  return `${Math.floor(s / DAY)} d` + (Math.floor((s % DAY) / HOUR) ? ` ${Math.floor((s % DAY) / HOUR)} h` : "");
}

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const weekday = (time) => WEEKDAYS[time.getDay()];

/** Mon */
export const shortWeekday = (time) => weekday(time).slice(0, 3);

/** Nov */
export const shortMonth = (time) => MONTHS[time.getMonth()].slice(0, 3);

/** Nov 14 */
export const date = (time) => `${shortMonth(time)} ${time.getDate()}`;

/** Nov 14, 2025 */
export const fullDate = (time) => `${date(time)}, ${time.getFullYear()}`;

const isThisYear = (time, now = Date.now()) => time.getFullYear() === new Date(now).getFullYear();

/** Nov 14; of another year Nov 14, 2025 */
export const nearDate = (time, now) => (isThisYear(time, now) ? date(time) : fullDate(time));

/** Friday, November 14; of another year Friday, November 14, 2025 */
export const longDate = (time) => `${weekday(time)}, ${MONTHS[time.getMonth()]} ${time.getDate()}${isThisYear(time) ? "" : `, ${time.getFullYear()}`}`;

/** just now, 4 min ago, 3 h ago, yesterday, Nov 14 */
export function ago(text, now = Date.now()) {
  const time = timeOf(text);
  if (!time) return "";
  const s = (now - time.getTime()) / 1000;
  if (s < 5) return "just now";
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < HOUR) return `${Math.floor(s / 60)} min ago`;
  if (s < 12 * HOUR) return `${Math.floor(s / HOUR)} h ago`;
  return day(text, now);
}

/** today, yesterday, Fri, Nov 14, Nov 14, 2025 */
export function day(text, now = Date.now()) {
  const time = timeOf(text);
  if (!time) return "";
  const today = new Date(now);
  const days = Math.round((new Date(today).setHours(0, 0, 0, 0) - new Date(time).setHours(0, 0, 0, 0)) / (DAY * 1000));
  if (days === 0) return "today";
  if (days === 1) return "yesterday";
  if (days > 0 && days < 7) return `${shortWeekday(time)}, ${date(time)}`;
  return nearDate(time, now);
}

const two = (n) => String(n).padStart(2, "0");

/** 09:41; with seconds 09:41:07 */
export function clock(text, seconds = false) {
  const time = timeOf(text);
  return time ? [time.getHours(), time.getMinutes(), ...(seconds ? [time.getSeconds()] : [])].map(two).join(":") : "";
}

/** Nov 14, 2025, 09:41:07 */
export function moment(text) {
  const time = timeOf(text);
  return time ? `${fullDate(time)}, ${clock(text, true)}` : "";
}

/** 2,145 */
export const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ",");

/** $0.004, $1.20, $2,145.78; "" where nobody knows. */
export function money(micros) {
  if (micros === null || micros === undefined) return "";
  const dollars = micros / 1e6;
  const digits = dollars !== 0 && Math.abs(dollars) < 0.1 ? 4 : 2;
  const [whole, part] = Math.abs(dollars).toFixed(digits).split(".");
  return `$${dollars < 0 ? "-" : ""}${grouped(whole)}.${part}`;
}

export const count = (n) => (n === null || n === undefined ? "" : (n < 0 ? "-" : "") + grouped(String(Math.abs(n))));

/** 812, 12.4k, 1.2M */
export function few(n) {
  if (n === null || n === undefined) return "";
  if (n < 1000) return String(n);
  if (n < 1e6) return (n / 1e3).toFixed(n < 1e5 ? 1 : 0).replace(/\.0$/, "") + "k";
  return (n / 1e6).toFixed(1).replace(/\.0$/, "") + "M";
}

export function bytes(n) {
  if (n === null || n === undefined) return "";
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)} KB`;
  return `${(n / 1e6).toFixed(1)} MB`;
}

/** A name in at most so many letters; one that is longer says that it goes on. */
export const brief = (text, most) => shown(text.length > most ? text.slice(0, most - 1).trimEnd() + "…" : text);

export const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

const RUNTIMES = { "claude-code": "Claude Code", codex: "Codex", harken: "Harken", "std-001": "Document", "std-008": "Document", otel: "OpenTelemetry", "gemini-cli": "Gemini CLI", opencode: "OpenCode", "opencode-export": "OpenCode export", kilo: "Kilo", "qwen-code": "Qwen Code", "copilot-cli": "Copilot CLI", atif: "ATIF" };
export const runtimeName = (name) => RUNTIMES[name] || shown(name) || "unknown";

/** claude-opus-4-5-20251101 is opus 4.5, and so is claude-opus-4.5 */
export function modelName(name) {
  if (!name) return "";
  const found = /^(?:.*\/)?claude-(?:(\d[\d.-]*)-)?([a-z]+)(?:-(\d{1,2}(?:[.-]\d{1,2})?))?(?:-\d{8})?(?:@.*)?$/.exec(name);
  if (found) return `${found[2]} ${(found[3] || found[1] || "").replace("-", ".")}`.trim();
  return shown(name.replace(/^.*\//, "").replace(/-\d{4}-?\d{2}-?\d{2}$/, ""));
}

/** The last part of a path, and with `parts` a few more. */
export function pathEnd(path, parts = 1) {
  const all = (path || "").split("/").filter(Boolean);
  return all.slice(-parts).join("/") || path || "";
}

const BIDI = /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g;
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** Text that cannot pretend to be another: marks of direction and control characters are shown. */
export function shown(text) {
  if (!text) return "";
  return String(text)
    .replace(BIDI, (mark) => `\u2039U+${mark.codePointAt(0).toString(16).toUpperCase()}\u203a`)
    .replace(CONTROL, (mark) => String.fromCodePoint(0x2400 + (mark.codePointAt(0) & 0x1f)));
}

const ACCENTS = /\p{M}/gu;
const ASCII = /^[\x00-\x7f]*$/;

/** In small letters and without accents, as the server looks for words. */
export const plain = (text) => String(text).normalize("NFD").replace(ACCENTS, "").toLowerCase();

/** The same, and for each place in it the one in the text that it stands for. */
export function plainPlaces(text) {
  const found = plain(text);
  if (ASCII.test(text)) return [found, (place) => place]; // nothing has moved
  const places = [];
  let at = 0;
  for (const letter of text) {
    for (let unit = plain(letter).length; unit > 0; unit -= 1) places.push(at);
    at += letter.length;
  }
  places.push(at);
  return [found, (place) => places[place]];
}

/** What is looked for: words, and what stands in quotation marks as one piece; in small letters without accents. */
export const pieces = (text) => [...plain(text).matchAll(/"([^"]+)"|(\S+)/g)].map((found) => found[1] || found[2]);
