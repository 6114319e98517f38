// Instants as the server has them: microseconds since 1970, and RFC 3339 with six digits. Dates of a browser have three.

/** Microseconds of a text; 0 where it is none. */
export function toMicros(text) {
  const time = text ? Date.parse(text) : NaN;
  if (Number.isNaN(time)) return 0;
  const digits = /\.(\d{3})(\d{1,3})/.exec(text)?.[2] || "";
  return time * 1000 + Number(digits.padEnd(3, "0"));
}

/** The text of an instant, with nothing lost. */
export function toInstant(micros) {
  const rest = String(((micros % 1000) + 1000) % 1000).padStart(3, "0");
  return new Date(Math.floor(micros / 1000)).toISOString().replace("Z", rest + "Z");
}
