// From time to places on a drawing, with pauses folded: a pause takes a few pixels however long it was.
//
// Times are microseconds since 1970. Between a time and a place stands *busy time*: the time without the pauses before
// it. A window is a part of busy time, so that zooming and panning go over a pause in one step.

const FOLD = 26; // pixels of a folded pause
const FOLDS = 0.3; // the part of a drawing that pauses may take together

/** The pauses of a session, and the way between time and busy time. */
export class Busy {
  constructor(first, last, gaps) {
    this.first = first;
    this.last = Math.max(last, first + 1000);
    let lost = 0;
    this.gaps = gaps.map(([start, end]) => {
      const gap = { start, end, at: start - lost };
      lost += end - start;
      return gap;
    });
    this.begin = first;
    this.end = this.last - lost;
  }

  /** Busy time of a time; all of a pause is one instant. */
  of(time) {
    let lost = 0;
    for (const gap of this.gaps) {
      if (time <= gap.start) break;
      if (time < gap.end) return gap.at;
      lost += gap.end - gap.start;
    }
    return time - lost;
  }

  /** The time of a busy time; `late` gives the end of a pause instead of its beginning. */
  time(busy, late = false) {
    let lost = 0;
    for (const gap of this.gaps) {
      if (late ? gap.at > busy : gap.at >= busy) break;
      lost += gap.end - gap.start;
    }
    return busy + lost;
  }

  /** A window within the whole, not shorter than a tenth of a second. */
  clamp(from, to) {
    const whole = this.end - this.begin;
    const length = Math.min(whole, Math.max(100_000, to - from));
    const start = Math.max(this.begin, Math.min(from, this.end - length));
    return [start, start + length];
  }
}

/** Where the times of a window are on so many pixels. */
export class Places {
  constructor(busy, [from, to], width) {
    this.busy = busy;
    this.from = from;
    this.to = to;
    this.width = width;
    this.gaps = busy.gaps.filter((gap) => gap.at >= from && gap.at <= to);
    this.fold = this.gaps.length ? Math.min(FOLD, (width * FOLDS) / this.gaps.length) : 0;
    this.scale = Math.max(1, width - this.fold * this.gaps.length) / Math.max(1, to - from);
  }

  /** The place of a time. */
  x(time) {
    const busy = this.busy.of(time);
    let folds = 0;
    for (const gap of this.gaps) {
      if (time <= gap.start) break;
      if (time < gap.end) {
        folds += this.fold * ((time - gap.start) / (gap.end - gap.start));
        break;
      }
      folds += this.fold;
    }
    return (busy - this.from) * this.scale + folds;
  }

  /** The busy time at a place. */
  busyAt(x) {
    let left = x;
    for (const gap of this.gaps) {
      const at = (gap.at - this.from) * this.scale;
      if (left <= at) break;
      if (left < at + this.fold) return gap.at;
      left -= this.fold;
    }
    return this.from + left / this.scale;
  }

  /** The time at a place. */
  time(x) {
    let left = x;
    for (const gap of this.gaps) {
      const at = (gap.at - this.from) * this.scale;
      if (left <= at) break;
      if (left < at + this.fold) return gap.start + ((left - at) / this.fold) * (gap.end - gap.start);
      left -= this.fold;
    }
    // Behind a pause that ends right here, the time is that after it.
    return this.busy.time(this.from + left / this.scale, left < x);
  }
}

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000];

/** Round times for the axis, far enough from each other: `[[x, time, step], …]`. */
export function ticks(places, least = places.width < 500 ? 62 : 96) {
  const room = least / places.scale / 1e6;
  const step = STEPS.find((one) => one >= room) || STEPS.at(-1);
  const found = [];
  const zone = new Date(places.busy.time(places.from) / 1000).getTimezoneOffset() * 60;
  let from = places.from;
  const edges = [...places.gaps.map((gap) => gap.at), places.to];
  let last = -Infinity;
  for (const edge of edges) {
    const begin = places.busy.time(from, true) / 1e6;
    const length = (edge - from) / 1e6;
    for (let at = Math.ceil((begin - zone) / step) * step + zone; at <= begin + length && found.length < 400; at += step) {
      const x = places.x(at * 1e6);
      if (x - last < least * 0.8 || x > places.width - 20) continue;
      found.push([x, at * 1e6, step]);
      last = x;
    }
    from = edge;
  }
  return found;
}
