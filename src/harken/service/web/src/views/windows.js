// Windows of time, as addresses write them: a word, or days of the reader's own zone.
import { nearDate } from "../words.js";

const DAY = 24 * 3600 * 1000;

/** word in the address, what a reader is told, days back; today is 0. */
export const WINDOWS = [
  ["today", "Today", 0],
  ["week", "7 days", 6],
  ["month", "30 days", 29],
  ["quarter", "90 days", 89],
  ["year", "Year", 364],
];

const midnight = (time) => new Date(new Date(time).setHours(0, 0, 0, 0));

/** The beginning of a day that is written like 2026-01-31; null where it is none. */
function dayOf(text) {
  const found = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text || "");
  if (!found) return null;
  const day = new Date(Number(found[1]), Number(found[2]) - 1, Number(found[3]));
  return Number.isNaN(day.getTime()) ? null : day;
}

/** 2026-01-31, in the reader's zone. */
export function dateOf(time) {
  const day = new Date(time);
  const two = (n) => String(n).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

/** The day after one that is written like 2026-01-31. */
export function dayAfter(text) {
  const day = dayOf(text);
  return day ? dateOf(new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1)) : "";
}

/** The instant a window begins at: "" for the beginning of everything. */
export function sinceOf(word, now = Date.now()) {
  const day = dayOf(word);
  if (day) return day.toISOString();
  const known = WINDOWS.find(([name]) => name === word);
  if (!known) return "";
  const today = midnight(now);
  return new Date(today.getFullYear(), today.getMonth(), today.getDate() - known[2]).toISOString();
}

export const untilOf = (word) => dayOf(word)?.toISOString() || "";

/** A window in words: Today, 7 days, Jan 14, Jan 14 to Jan 20, since Jan 14. */
export function windowName(since, until) {
  const known = WINDOWS.find(([name]) => name === since);
  if (known && !until) return known[1];
  const [from, behind] = [dayOf(since), dayOf(until)];
  const last = behind && new Date(behind.getFullYear(), behind.getMonth(), behind.getDate() - 1);
  if (from && last) return from.getTime() === last.getTime() ? nearDate(from) : `${nearDate(from)} to ${nearDate(last)}`;
  if (from) return `since ${nearDate(from)}`;
  return last ? `until ${nearDate(last)}` : "";
}

/** The days of a window in their order, as dates; at most so many. */
export function daysBetween(first, last, most = 400) {
  const days = [];
  for (let day = first; day && day <= last && days.length < most; day = dayAfter(day)) days.push(day);
  return days;
}

export { DAY };
