// Queries on the left, keys on the right, and a line for each weight. Two sides of equal length scroll together, others
// separately.

const FAINT = 0.02; // relative to the largest weight; smaller weights have no line
const TOLD = 0.001; // minimum weight on hidden keys that is reported

class Lines {
  constructor(page) {
    this.page = page;
    const list = (name, title) =>
      new TokenList(
        name,
        title,
        (over) => this.hover(over),
        (place) => this.choose(name, place),
      );
    this.queries = list("query", "Queries");
    this.keys = list("key", "Keys");
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.above = make("button", { type: "button", class: "beyond above" });
    this.below = make("button", { type: "button", class: "beyond below" });
    this.middle = make("div", { class: "lines-middle" }, this.canvas, this.above, this.below);
    this.view = make("div", { class: "lines-view" }, this.queries.element, this.middle, this.keys.element);
    const heads = make(
      "div",
      { class: "lines-heads" },
      make("b", { class: "query" }, "Queries"),
      make("span", { class: "muted" }, "look at"),
      make("b", { class: "key" }, "Keys"),
    );
    this.element = make("div", { class: "pane-body lines" }, heads, this.view);
    this.draw = drawnLater(() => this.paint());
    this.queries.element.addEventListener("scroll", () => this.scrolled(this.queries, this.keys));
    this.keys.element.addEventListener("scroll", () => this.scrolled(this.keys, this.queries));
    this.middle.addEventListener("wheel", (event) => this.wheel(event), { passive: true });
    for (const button of [this.above, this.below])
      button.addEventListener("click", () => this.keys.reveal(Number(button.dataset.key)));
    new ResizeObserver(() => this.draw()).observe(this.view);
  }

  open(head) {
    this.head = head;
    this.over = null;
    this.queries.open(head.queries);
    this.keys.open(head.keys);
    this.reveal(this.page.query, this.page.key);
  }

  get together() {
    return this.head.queries.count === this.head.keys.count;
  }

  scrolled(list, other) {
    const by = list.element.scrollTop - list.before;
    list.before = list.element.scrollTop;
    if (this.together && by) other.move(other.element.scrollTop + by);
    this.draw();
  }

  wheel(event) {
    if (event.ctrlKey) return;
    const by = event.deltaY * (event.deltaMode ? ROW : 1);
    for (const list of [this.queries, this.keys]) list.move(list.element.scrollTop + by);
    this.draw();
  }

  hover(over) {
    if (over?.query === this.over?.query && over?.key === this.over?.key) return;
    this.over = over;
    this.page.stage.light(over ?? this.page);
    this.draw();
  }

  choose(name, place) {
    this.page.choose({ query: null, key: null, [name]: this.page[name] === place ? null : place });
  }

  reveal(query, key) {
    if (query !== null) this.queries.reveal(query);
    if (query !== null && key === null) this.keys.reveal(this.together ? query : (this.head.top(query)[0]?.key ?? 0));
    if (key !== null) this.keys.reveal(key);
    this.draw();
  }

  /** The token whose lines are highlighted: the one under the pointer, or the chosen one, if any. */
  get focus() {
    if (this.over) return { query: this.over.query ?? null, key: this.over.key ?? null };
    const { query, key } = this.page;
    return query !== null ? { query, key: null } : { query: null, key };
  }

  paint() {
    const { head, page } = this;
    const [width, height] = [this.middle.clientWidth, this.view.clientHeight];
    if (!head || width < 1 || height < 1) return;
    const { from, to } = this.queries.sight;
    page.attempt(() => head.want(from, to));
    const context = sharp(this.canvas, width, height);
    const focus = this.focus;
    const [faint, strong] = this.lines(focus, head);
    const free = focus.query === null && focus.key === null;
    const drawn = page.stage.layers.drawn;
    for (const layer of drawn.length ? drawn : [{ head, ink: null }]) {
      page.attempt(() => layer.head.want(from, to));
      const [weak, main] = layer.head === head ? [faint, strong] : this.lines(focus, layer.head);
      const plain = focus.key === null ? page.theme.query : page.theme.key;
      for (const line of weak) this.line(context, width, line, free ? 0.75 : 0.05, layer.ink?.hex ?? page.theme.query);
      for (const line of main) this.line(context, width, line, 1, layer.ink?.hex ?? plain);
    }
    const look = (name, other, found, side) => {
      const looked = new Map(focus[other] === null ? [] : strong.map((line) => [line[name], line]));
      return (place) => {
        const line = looked.get(place);
        const told = line ? figures(line.weight) : side.told ? String(place) : "";
        return { found: found.has(place), over: focus[name] === place, share: line?.share, told };
      };
    };
    this.queries.paint(look("query", "key", page.found("query"), head.queries), page.query);
    this.keys.paint(look("key", "query", page.found("key"), head.keys), page.key);
    this.tellBeyond(focus.query === null ? [] : head.top(focus.query));
  }

  /** The lines of the visible queries, and the highlighted ones (all known ones of a key), with their ratio to the
   *  largest of the same kind. */
  lines(focus, head) {
    const { from, to } = this.queries.sight;
    const keys = this.keys.sight;
    const [faint, strong] = [[], []];
    const add = (query, key, weight) => {
      const stands = focus.query === query || focus.key === key;
      if (stands || (key >= keys.from - ROW && key < keys.to + ROW))
        (stands ? strong : faint).push({ query, key, weight });
    };
    for (let query = from; query < to; query++) {
      const row = head.row(query);
      row?.keys.forEach((key, place) => {
        if (key >= 0 && inPart(this.head.part, query, key)) add(query, key, row.weights[place]);
      });
    }
    for (const { query, weight } of focus.key === null ? [] : head.lookers(focus.key)) {
      if (query < from || query >= to) add(query, focus.key, weight);
    }
    return [faint, strong].map((lines) => {
      const top = this.page.alike ? this.page.most : lines.reduce((most, { weight }) => Math.max(most, weight), 0);
      return lines.map((line) => ({ ...line, share: line.weight / top })).filter(({ share }) => share >= FAINT);
    });
  }

  line(context, width, { query, key, share }, alpha, colour) {
    const [from, to] = [this.queries.middle(query), this.keys.middle(key)];
    context.globalAlpha = alpha * (0.1 + 0.9 * Math.sqrt(share));
    context.strokeStyle = colour;
    context.lineWidth = 0.8 + 3.2 * share;
    context.beginPath();
    context.moveTo(0, from);
    context.bezierCurveTo(width * 0.45, from, width * 0.55, to, width, to);
    context.stroke();
  }

  /** The weight of the query on hidden keys, and the direction of the largest one. */
  tellBeyond(looked) {
    const { from, to } = this.keys.sight;
    const least = this.head.complete ? "" : "at least "; // of a long row only the largest weights are known
    const tell = (button, arrow, where, beyond) => {
      const sum = beyond.reduce((total, { weight }) => total + weight, 0);
      button.hidden = sum < TOLD;
      if (button.hidden) return;
      const [most] = beyond; // in descending order
      button.dataset.key = most.key;
      button.textContent = `${arrow} ${figures(sum)}`;
      const told = `${least}${figures(sum)} of the weight is on keys ${where}: go to key ${most.key}`;
      button.setAttribute("aria-label", told);
    };
    const above = looked.filter(({ key }) => key < from);
    const below = looked.filter(({ key }) => key >= to);
    tell(this.above, "↑", "above", above);
    tell(this.below, "↓", "below", below);
  }
}
