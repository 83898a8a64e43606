// What is removed, heads and single weights: which they are, what the answer was with them, and a way back.

const LISTED_REMOVED = 24;

class Removed {
  /** `changed` is called when something else is removed than before. */
  constructor(changed) {
    this.changed = changed;
    this.all = [];
    this.answer = make("div", { class: "removed-answer", role: "status" });
    this.list = make("div", { class: "removed-list" });
    this.element = make("div", { class: "removed", role: "group", "aria-label": "What is removed", hidden: true }, this.list, this.answer);
  }

  /** What is asked of the server with an input: single weights are those of one input alone. */
  of(given) {
    const text = JSON.stringify(given);
    if (this.given !== undefined && text !== this.given) this.all = this.all.filter(({ pair }) => !pair);
    this.given = text;
    this.show();
    return this.asked;
  }

  /** What the server takes: a site and a head, or these with a query and a key. */
  get asked() {
    return this.all.map(({ site, head, pair }) => [site, head, ...(pair ? [pair.query, pair.key] : [])]);
  }

  find(site, head, pair) {
    const same = (one) => one?.query === pair?.query && one?.key === pair?.key;
    return this.all.find((each) => each.site === site && each.head === head && same(each.pair));
  }

  /** Remove a head, or the weight of a pair in it, or bring it back; `told` says which it is. */
  toggle(site, head, pair, told = "") {
    const found = this.find(site, head, pair);
    this.all = found ? this.all.filter((each) => each !== found) : [...this.all, { site, head, pair, told }];
    this.show();
    this.changed();
  }

  restore() {
    this.all = [];
    this.show();
    this.changed();
  }

  /** Show other things as removed, such as those of an earlier look. */
  take(asked) {
    this.given = undefined;
    this.all = asked.map(([site, head, query, key]) => (query === undefined ? { site, head } : { site, head, pair: { query, key }, told: `${query} to ${key}` }));
    this.show();
  }

  show() {
    this.element.hidden = !this.all.length;
    const chips = this.all.slice(0, LISTED_REMOVED).map(({ site, head, pair, told }) => {
      const name = `${site}, head ${head}${pair ? `, ${told}` : ""}`;
      const chip = make("button", { type: "button", class: "prompt-example", title: "Bring it back", "aria-label": `Bring back ${name}` }, `${name} ×`);
      chip.addEventListener("click", () => this.toggle(site, head, pair));
      return chip;
    });
    const more = this.all.length - chips.length;
    const all = make("button", { type: "button", class: "link" }, "Bring all back");
    all.addEventListener("click", () => this.restore());
    this.list.replaceChildren(make("span", { class: "muted" }, "Without"), ...chips, more > 0 ? `and ${more} more` : "", all);
  }

  /** What the model says with all of it, and what without: the notes in which they differ. */
  compare(before, now) {
    const lines = (name, notes, others) =>
      notes.filter((note) => !others.includes(note)).map((note) => make("p", {}, make("b", {}, name), " ", make("bdi", {}, note)));
    const found = [...lines("Before:", before, now), ...lines("Now:", now, before)];
    this.answer.replaceChildren(...(found.length ? found : [make("p", { class: "muted" }, "What the model says is the same.")]));
  }
}
