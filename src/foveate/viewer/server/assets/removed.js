// Heads that are removed: which they are, what the answer was with them, and a way back.

const LISTED_REMOVED = 24;

class Removed {
  /** `changed` is called when other heads are removed than before. */
  constructor(changed) {
    this.changed = changed;
    this.heads = [];
    this.answer = make("div", { class: "removed-answer", role: "status" });
    this.list = make("div", { class: "removed-list" });
    this.element = make("div", { class: "removed", role: "group", "aria-label": "Removed heads", hidden: true }, this.list, this.answer);
  }

  /** The pairs that the server takes. */
  get pairs() {
    return this.heads.map(({ site, head }) => [site, head]);
  }

  has(site, head) {
    return this.heads.some((each) => each.site === site && each.head === head);
  }

  /** Remove a head, or bring it back. */
  toggle(site, head) {
    this.heads = this.has(site, head) ? this.heads.filter((each) => each.site !== site || each.head !== head) : [...this.heads, { site, head }];
    this.show();
    this.changed();
  }

  restore() {
    this.heads = [];
    this.show();
    this.changed();
  }

  /** Show other heads as removed, such as those of an earlier look. */
  take(pairs) {
    this.heads = pairs.map(([site, head]) => ({ site, head }));
    this.show();
  }

  show() {
    this.element.hidden = !this.heads.length;
    const chips = this.heads.slice(0, LISTED_REMOVED).map(({ site, head }) => {
      const name = `${site}, head ${head}`;
      const chip = make("button", { type: "button", class: "prompt-example", title: "Bring it back", "aria-label": `Bring back ${name}` }, `${name} ×`);
      chip.addEventListener("click", () => this.toggle(site, head));
      return chip;
    });
    const more = this.heads.length - chips.length;
    const all = make("button", { type: "button", class: "link" }, "Bring all back");
    all.addEventListener("click", () => this.restore());
    this.list.replaceChildren(make("span", { class: "muted" }, "Without"), ...chips, more > 0 ? `and ${more} more` : "", all);
  }

  /** What the model says with all its heads, and what without the removed ones: the notes in which they differ. */
  compare(before, now) {
    const lines = (name, notes, others) =>
      notes.filter((note) => !others.includes(note)).map((note) => make("p", {}, make("b", {}, name), " ", make("bdi", {}, note)));
    const found = [...lines("Before:", before, now), ...lines("Now:", now, before)];
    this.answer.replaceChildren(...(found.length ? found : [make("p", { class: "muted" }, "What the model says is the same.")]));
  }
}
