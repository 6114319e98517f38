// A list of any length: only the rows in sight are elements, and only the pages around them are loaded.
//
// Heights are guesses until a row has been seen. What stays in place is the *anchor*, the row at the top and how much of
// it is scrolled away: whatever becomes higher or lower above it, the reader does not notice. A jump sets the anchor,
// and is exact once the rows around it have been measured. Browsers cannot scroll further than some 16 million pixels;
// a longer list is scrolled by a scale.
import { Component } from "preact";
import { html } from "./html.js";
import { afterDrawing } from "./drawing.js";
import { onReturn } from "./server.js";

const PAGE = 200;
const PAGES = 40;
const LONGEST = 16_000_000;
const BESIDE = 8; // rows beyond the edges that are made all the same
const NEAR_END = 30; // pixels from the end within which the list follows what comes

/** Sums of heights: where a row begins, and which row is at a place, each in a few steps (a Fenwick tree). */
export class Heights {
  constructor(count, estimate) {
    this.count = count;
    this.heights = typeof estimate === "function" ? Float64Array.from({ length: count }, (_, at) => estimate(at)) : new Float64Array(count).fill(estimate);
    this.#build();
  }

  #build() {
    const tree = (this.tree = new Float64Array(this.count + 1));
    for (let at = 1; at <= this.count; at++) {
      tree[at] += this.heights[at - 1];
      const above = at + (at & -at);
      if (above <= this.count) tree[above] += tree[at];
    }
  }

  resize(count, estimate) {
    const before = this.heights;
    const next = new Heights(count, estimate);
    next.heights.set(before.subarray(0, Math.min(before.length, count)));
    this.count = count;
    this.heights = next.heights;
    this.#build();
  }

  set(at, height) {
    const more = height - this.heights[at];
    if (!more) return;
    this.heights[at] = height;
    for (let node = at + 1; node <= this.count; node += node & -node) this.tree[node] += more;
  }

  /** The sum of the first `count` heights: where row `count` begins. */
  before(count) {
    let sum = 0;
    for (let node = Math.min(count, this.count); node > 0; node -= node & -node) sum += this.tree[node];
    return sum;
  }

  get total() {
    return this.before(this.count);
  }

  /** The row at a place. */
  at(place) {
    let node = 0;
    let left = place;
    for (let step = 1 << Math.floor(Math.log2(Math.max(1, this.count))); step; step >>= 1) {
      if (node + step <= this.count && this.tree[node + step] <= left) {
        node += step;
        left -= this.tree[node];
      }
    }
    return Math.min(node, Math.max(0, this.count - 1));
  }
}

/**
 * total: how many rows; load(start, count): a promise of rows; row(data, n): what a row looks like;
 * estimate: the height of a row nobody has seen; version: when it changes, what was loaded is loaded again;
 * onView(first, last): what is in sight; follow: whether to stay at the end as the list grows;
 * handle: a ref that gets the list itself, for `scrollTo` and the like;
 * partial: whether there are more rows than anybody has counted yet;
 * known: the first rows, where they are there already: they are shown before any is loaded.
 */
export class List extends Component {
  constructor(props) {
    super(props);
    this.heights = new Heights(props.total, props.estimate || 40);
    this.pages = new Map(props.known?.length ? [[0, props.known]] : []);
    this.stale = new Set(props.known && props.known.length < Math.min(PAGE, props.total) ? [0] : []); // the rest is to come
    this.asked = new Set();
    this.toFocus = null;
    this.anchor = props.follow ? { end: true } : { n: props.start || 0, inset: props.start ? -(props.lead ?? 80) : 0 };
    this.ownScroll = -1;
    if (props.known && this.anchor.n === 0) this.#guess();
    this.observer = new ResizeObserver((seen) => this.#measured(seen));
    if (props.handle) props.handle.current = this;
  }

  componentDidMount() {
    this.viewer = new ResizeObserver(() => this.#settle());
    this.viewer.observe(this.scroller);
    this.unfollow = onReturn(() => this.#load()); // what did not come, when the server is back
    this.waits = Boolean(this.props.known);
    if (this.waits) afterDrawing(() => ((this.waits = false), this.gone || this.#load()));
    this.#settle();
  }

  componentWillUnmount() {
    this.gone = true;
    if (this.props.handle?.current === this) this.props.handle.current = null;
    this.viewer.disconnect();
    this.unfollow();
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  componentDidUpdate(before) {
    const { total, version, source } = this.props;
    if (source !== before.source) {
      this.pages.clear();
      this.stale.clear();
      this.asked = new Set(); // what is on its way is of what was shown before
      this.heights = new Heights(total, this.props.estimate || 40);
      this.anchor = { n: this.props.start || 0, inset: 0 };
      this.#settle();
    } else if (total !== before.total || version !== before.version) {
      const wasAtEnd = this.props.follow && this.#isAtEnd();
      for (const page of [...this.pages.keys(), ...this.asked]) this.stale.add(page);
      if (total !== before.total) this.heights.resize(total, this.props.estimate || 40);
      if (wasAtEnd) this.anchor = { end: true };
      this.#settle();
    }
    this.#focusRow();
  }

  /** Bring a row into sight: at a third of the height, or as near as the list allows. */
  scrollTo(n, { lead = (this.scroller?.clientHeight || 600) / 3, onlyIfHidden = false } = {}) {
    if (onlyIfHidden && n >= this.first + 1 && n < this.lastWhole) return;
    this.anchor = { n: Math.max(0, Math.min(n, this.props.total - 1)), inset: -Math.round(lead) };
    this.#settle();
  }

  scrollToEnd() {
    this.anchor = { end: true };
    this.#settle();
  }

  focus() {
    this.scroller?.focus({ preventScroll: true });
  }

  /** Put the focus on something in a row as soon as the row is there; on the list until then, so that no key goes astray. */
  focusRow(n, selector) {
    this.focus();
    this.toFocus = { n, selector };
    this.#focusRow();
  }

  #focusRow() {
    const found = this.toFocus && this.spacer?.querySelector(`[data-n="${this.toFocus.n}"] ${this.toFocus.selector}`);
    if (this.toFocus && document.activeElement !== this.scroller && !this.scroller.contains(document.activeElement)) this.toFocus = null;
    if (!found || !this.toFocus) return false;
    this.toFocus = null;
    found.focus({ preventScroll: true });
    return true;
  }

  /** The row, where it has been loaded. */
  get(n) {
    return this.pages.get(Math.floor(n / PAGE))?.[n % PAGE];
  }

  /** The number of a row that has been loaded and fits; -1 where none does. */
  find(fits) {
    for (const [page, rows] of this.pages) {
      const at = rows.findIndex(fits);
      if (at >= 0) return page * PAGE + at;
    }
    return -1;
  }

  // -- where we are ---

  get #content() {
    return this.heights.total + (this.props.tail || 0);
  }

  get #scale() {
    const view = this.scroller.clientHeight;
    const content = this.#content;
    return content > LONGEST ? Math.max(1, (content - view) / (LONGEST - view)) : 1;
  }

  /** Which rows are going to be in sight, before there is anything to measure: so all is laid out once. */
  #guess() {
    const { total, known } = this.props;
    this.from = 0;
    this.to = Math.min(total, known.length, this.heights.at(innerHeight) + BESIDE) - 1;
  }

  #isAtEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR_END;
  }

  #offset() {
    if (this.anchor.end) return Math.max(0, this.#content - this.scroller.clientHeight);
    const wanted = this.heights.before(this.anchor.n) + this.anchor.inset;
    return Math.max(0, Math.min(wanted, this.#content - this.scroller.clientHeight));
  }

  /** Put the scroll bar where the anchor is, and make the rows that are then in sight. */
  #settle() {
    if (this.gone || !this.scroller) return;
    this.spacer.style.height = Math.min(this.#content, LONGEST) + "px";
    const top = Math.round(this.#offset() / this.#scale);
    if (Math.abs(this.scroller.scrollTop - top) >= 1) {
      this.scroller.scrollTop = top;
      this.ownScroll = this.scroller.scrollTop;
    }
    this.#look();
  }

  #scrolled = () => {
    const top = this.scroller.scrollTop;
    if (this.ownScroll >= 0 && Math.abs(top - this.ownScroll) < 1) {
      this.ownScroll = -1;
      return;
    }
    this.ownScroll = -1;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      if (this.gone) return;
      if (this.props.follow && this.#isAtEnd()) {
        this.anchor = { end: true };
      } else {
        const offset = this.scroller.scrollTop * this.#scale;
        const n = this.heights.at(offset);
        this.anchor = { n, inset: offset - this.heights.before(n) };
      }
      this.#look();
      this.props.onScroll?.(this.#isAtEnd());
    });
  };

  #look() {
    const offset = this.#offset();
    const view = this.scroller.clientHeight;
    const first = this.heights.at(offset);
    const last = Math.min(this.props.total - 1, this.heights.at(offset + view));
    this.first = first;
    this.lastWhole = last;
    this.from = Math.max(0, first - BESIDE);
    this.to = Math.min(this.props.total - 1, last + BESIDE);
    this.#load();
    this.props.onView?.(first, last);
    this.setState({ look: {} });
  }

  #load() {
    if (!this.props.total) return;
    for (let page = Math.floor(this.from / PAGE); page <= Math.floor(this.to / PAGE); page++) {
      const there = this.pages.get(page);
      if (there !== undefined && this.waits && !page) continue;
      if (there !== undefined && !this.stale.has(page)) {
        this.pages.delete(page); // the pages looked at last are kept longest
        this.pages.set(page, there);
        continue;
      }
      if (!this.asked.has(page)) this.#ask(page);
    }
  }

  #ask(page) {
    const { asked } = this;
    asked.add(page);
    this.stale.delete(page); // what makes it old from now on makes what is on its way old, too
    this.props
      .load(page * PAGE, PAGE)
      .then((rows) => {
        if (asked !== this.asked) return;
        this.pages.set(page, rows);
        while (this.pages.size > PAGES) this.pages.delete(this.pages.keys().next().value);
        asked.delete(page);
        if (!this.gone && this.stale.has(page)) this.#load();
      })
      .catch((problem) => {
        asked.delete(page);
        if (asked === this.asked && this.pages.has(page)) this.stale.add(page);
        this.props.onProblem?.(problem);
      })
      .finally(() => this.gone || this.setState({ look: {} }));
  }

  #measured(seen) {
    let changed = false;
    for (const { target } of seen) {
      const n = Number(target.dataset.n);
      const height = target.offsetHeight;
      if (height && n < this.heights.count && Math.abs(this.heights.heights[n] - height) >= 1) {
        this.heights.set(n, height);
        changed = true;
      }
    }
    if (changed) this.#settle();
  }

  #hold = (element) => {
    if (element) this.observer.observe(element);
  };

  render() {
    const { total, partial, row, label, itemRole = "article", class: name = "" } = this.props;
    const rows = [];
    if ((this.scroller || this.to >= 0) && total) {
      const shift = !this.scroller || this.#scale === 1 ? 0 : this.scroller.scrollTop - this.#offset();
      let place = this.heights.before(this.from) + shift;
      for (let n = this.from; n <= this.to; n++) {
        const data = this.get(n);
        rows.push(html`<div
          key=${n}
          data-n=${n}
          ref=${data ? this.#hold : null}
          class="list-row"
          role=${itemRole}
          aria-posinset=${n + 1}
          aria-setsize=${partial ? -1 : total}
          style=${{ transform: `translateY(${place}px)`, minHeight: data ? null : `${this.heights.heights[n]}px` }}
        >${data ? row(data, n) : html`<div class="list-wait" aria-hidden="true"><i></i><i></i></div>`}</div>`);
        place += this.heights.heights[n];
      }
    }
    return html`<div
      class=${"list " + name}
      role=${itemRole === "article" ? "feed" : "list"}
      aria-label=${label}
      aria-busy=${this.asked.size ? "true" : "false"}
      tabindex="0"
      ref=${(element) => void (this.scroller = element || this.scroller)}
      onScroll=${this.#scrolled}
    >
      ${this.props.before}
      <div class="list-space" ref=${(element) => void (this.spacer = element || this.spacer)}>${rows}</div>
    </div>`;
  }
}
