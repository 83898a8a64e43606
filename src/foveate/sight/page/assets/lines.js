// Queries on the left, keys on the right, and a line for each weight between them. Only tokens in sight exist, so that long
// texts scroll as short ones do. Two sides of one length scroll together; others each for itself.

const ROW = 24;
const FAINT = 0.012; // weights below are not drawn

/** One of the two lists: its tokens lie in a box as high as all of them, and those in sight are there. */
class TokenList {
  constructor(name, title, over, choose) {
    this.name = name;
    this.length = make("div", { class: "tokens-length" });
    this.element = make("div", { class: `tokens of-${name}`, role: "listbox", "aria-label": title, tabIndex: 0 }, this.length);
    const place = (event) => {
      const token = event.target.closest("[role=option]");
      return token ? Number(token.dataset.place) : null;
    };
    this.element.addEventListener("click", (event) => place(event) !== null && choose(place(event)));
    this.element.addEventListener("pointerover", (event) => place(event) !== null && over({ [name]: place(event) }));
    this.element.addEventListener("pointerleave", () => over(null));
    this.before = 0;
  }

  open(side) {
    this.side = side;
    this.length.style.height = `${side.count * ROW}px`;
    this.before = this.element.scrollTop;
  }

  /** Move to an offset, without word to the other list. */
  move(offset) {
    this.element.scrollTop = offset;
    this.before = this.element.scrollTop;
  }

  reveal(place) {
    const { from, to } = this.sight;
    if (place <= from || place >= to - 1) this.move((place + 0.5) * ROW - this.element.clientHeight / 2);
  }

  get sight() {
    const { scrollTop, clientHeight } = this.element;
    const from = Math.floor(scrollTop / ROW);
    return { from, to: Math.min(this.side.count, Math.ceil((scrollTop + clientHeight) / ROW)) };
  }

  /** Where the middle of a token is, from the top of what is in sight. */
  middle(place) {
    return (place + 0.5) * ROW - this.element.scrollTop;
  }

  /** Fill in the tokens in sight; `look` says how each is to look. Elements stay: one may just be clicked. */
  paint(look, chosen) {
    const { from, to } = this.sight;
    while (this.length.childElementCount > to - from) this.length.lastElementChild.remove();
    while (this.length.childElementCount < to - from) {
      this.length.append(make("div", { role: "option", class: "token" }, make("bdi", { class: "text" }), make("span", { class: "place" })));
    }
    for (let place = from; place < to; place++) {
      const token = this.length.children[place - from];
      const { found, over, share, told } = look(place);
      token.dataset.place = place;
      token.id = `${this.name}-${place}`;
      token.style.transform = `translateY(${place * ROW}px)`;
      token.setAttribute("aria-selected", String(chosen === place));
      token.classList.toggle("found", found);
      token.classList.toggle("over", over);
      token.classList.toggle("looked", share !== undefined);
      if (share !== undefined) token.style.setProperty("--share", `${Math.round(8 + 92 * share)}%`);
      token.firstChild.textContent = cut(this.side.short(place), 40);
      token.lastChild.textContent = told;
    }
    if (chosen !== null && chosen >= from && chosen < to) this.element.setAttribute("aria-activedescendant", `${this.name}-${chosen}`);
    else this.element.removeAttribute("aria-activedescendant");
  }
}

class Lines {
  constructor(page) {
    this.page = page;
    const list = (name, title) => new TokenList(name, title, (over) => this.hover(over), (place) => this.choose(name, place));
    this.queries = list("query", "Queries");
    this.keys = list("key", "Keys");
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.above = make("button", { type: "button", class: "beyond above" });
    this.below = make("button", { type: "button", class: "beyond below" });
    this.middle = make("div", { class: "lines-middle" }, this.canvas, this.above, this.below);
    this.view = make("div", { class: "lines-view" }, this.queries.element, this.middle, this.keys.element);
    const heads = make("div", { class: "lines-heads" }, make("b", { class: "query" }, "Queries"), make("span", { class: "muted" }, "look at"), make("b", { class: "key" }, "Keys"));
    this.element = make("div", { class: "pane-body lines" }, heads, this.view);
    this.draw = drawnLater(() => this.paint());
    this.queries.element.addEventListener("scroll", () => this.scrolled(this.queries, this.keys));
    this.keys.element.addEventListener("scroll", () => this.scrolled(this.keys, this.queries));
    this.middle.addEventListener("wheel", (event) => this.wheel(event), { passive: true });
    for (const button of [this.above, this.below]) button.addEventListener("click", () => this.keys.reveal(Number(button.dataset.key)));
    new ResizeObserver(() => this.draw()).observe(this.view);
  }

  open(head) {
    this.head = head;
    this.over = null;
    this.queries.open(head.queries);
    this.keys.open(head.keys);
    this.draw();
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

  /** The token whose lines stand out: the one under the pointer, else the chosen one; all are equal where there is none. */
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
    const lines = this.lines(focus);
    const strong = lines.filter((line) => line.strong);
    this.top = Math.max(...strong.map((line) => line.weight), 0) || 1;
    for (const line of lines) if (!line.strong) this.line(context, width, line, focus);
    for (const line of strong) this.line(context, width, line, focus);
    const look = (name, other, found, side) => {
      const weights = new Map(focus[other] === null ? [] : strong.map((line) => [line[name], line.weight]));
      return (place) => {
        const weight = weights.get(place);
        const told = weight === undefined ? (side.told ? String(place) : "") : figures(weight);
        return { found: found.has(place), over: focus[name] === place, share: weight && weight / this.top, told };
      };
    };
    this.queries.paint(look("query", "key", page.matches.queries, head.queries), page.query);
    this.keys.paint(look("key", "query", page.matches.keys, head.keys), page.key);
    this.tellBeyond(focus.query === null ? [] : strong);
  }

  /** The lines of the queries in sight; of a key that stands out all that are known. */
  lines(focus) {
    const { head } = this;
    const { from, to } = this.queries.sight;
    const keys = this.keys.sight;
    const free = focus.query === null && focus.key === null;
    const found = [];
    const add = (query, key, weight) => {
      const strong = focus.query === query || focus.key === key;
      if (weight >= FAINT) found.push({ query, key, weight, strong, alpha: strong ? 1 : free ? 0.75 : 0.05 });
    };
    for (let query = from; query < to; query++) {
      const row = head.row(query);
      row?.keys.forEach((key, place) => {
        if (focus.query === query || (key >= keys.from - 40 && key < keys.to + 40)) add(query, key, row.weights[place]);
      });
    }
    for (const { query, weight } of focus.key === null ? [] : head.lookers(focus.key)) {
      if (query < from || query >= to) add(query, focus.key, weight);
    }
    return found;
  }

  line(context, width, { query, key, weight, strong, alpha }, focus) {
    const [from, to] = [this.queries.middle(query), this.keys.middle(key)];
    const share = strong ? weight / this.top : weight;
    const { theme } = this.page;
    context.globalAlpha = alpha * (0.1 + 0.9 * Math.sqrt(share));
    context.strokeStyle = strong && focus.key !== null ? theme.key : theme.query;
    context.lineWidth = 0.8 + 3.2 * share;
    context.beginPath();
    context.moveTo(0, from);
    context.bezierCurveTo(width * 0.45, from, width * 0.55, to, width, to);
    context.stroke();
  }

  /** How much of the query's weight lies on keys out of sight, and the way to the largest of them. */
  tellBeyond(lines) {
    const { from, to } = this.keys.sight;
    const tell = (button, arrow, where, beyond) => {
      const sum = beyond.reduce((total, { weight }) => total + weight, 0);
      button.hidden = !beyond.length;
      if (!beyond.length) return;
      const most = beyond.reduce((best, line) => (line.weight > best.weight ? line : best));
      button.dataset.key = most.key;
      button.textContent = `${arrow} ${figures(sum)}`;
      button.setAttribute("aria-label", `${figures(sum)} of the weight is on keys ${where}: go to key ${most.key}`);
    };
    tell(this.above, "↑", "above", lines.filter(({ key }) => key < from));
    tell(this.below, "↓", "below", lines.filter(({ key }) => key >= to));
  }
}
