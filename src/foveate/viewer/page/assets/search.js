// Search: all positions whose token has a text, to step through or to choose from. With a head open these are its queries
// and keys; in the overview all tokens that the model reads or writes.

const SHOWN = 40;

class Search {
  constructor(page) {
    this.page = page;
    this.box = find("search");
    this.input = find("wanted");
    this.list = find("found");
    this.places = [];
    this.at = -1;
    this.input.addEventListener("input", () => this.look());
    this.input.addEventListener("focus", () => clearTimeout(this.leaving) || this.look());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => {
      this.leaving = setTimeout(() => (this.list.hidden = true), 150);
    });
    this.list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  }

  /** Show the field if there is a text to search in; what was searched for is searched for again. */
  show() {
    this.box.hidden = !this.sides.length;
    this.input.placeholder = this.page.head ? "Find a query or key" : "Find a token";
    this.look(false);
  }

  /** What is searched: "query" and "key" of an open head, or the texts of the overview by their numbers. */
  get sides() {
    const { head, overview } = this.page;
    if (head) return [["query", head.queries], ["key", head.keys]];
    const texts = (overview?.sides ?? []).map((side, number) => [number, new Side(side)]);
    return texts.filter(([, side]) => side.told);
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  clear() {
    this.input.value = "";
    this.look();
    this.list.hidden = true;
  }

  look(listed = true) {
    const plain = (text) => text.normalize("NFC").toLowerCase(); // an umlaut may be one character or two
    const wanted = plain(this.input.value.trim());
    const among = (side) => {
      const found = [];
      for (let place = 0; wanted && place < side.count; place++) {
        if (plain(side.label(place)).includes(wanted) || String(place) === wanted) found.push(place);
      }
      return found;
    };
    const found = this.sides.map(([name, side]) => [name, among(side)]);
    this.page.match(new Map(found.map(([name, places]) => [name, new Set(places)])));
    this.places = found.flatMap(([name, places]) => places.map((place) => [name, place]));
    this.at = -1;
    this.fill(listed);
  }

  fill(listed) {
    const sides = new Map(this.sides);
    const told = (name, place) => {
      if (this.page.head) return `${name} ${count(place)}`;
      return sides.size > 1 ? `text ${[...sides.keys()].indexOf(name) + 1}, token ${count(place)}` : `token ${count(place)}`;
    };
    const from = clamp(this.at - SHOWN / 2, 0, Math.max(0, this.places.length - SHOWN));
    const options = this.places.slice(from, from + SHOWN).map(([name, place], index) => {
      const option = make(
        "div",
        { role: "option", class: "option", "aria-selected": String(from + index === this.at) },
        make("bdi", { class: `option-text ${name}` }, cut(sides.get(name).label(place), 32)),
        make("span", { class: "muted" }, told(name, place)),
      );
      option.addEventListener("click", () => this.go(from + index));
      return option;
    });
    const counts = this.places.length
      ? `${this.at < 0 ? "" : `${this.at + 1} of `}${counted(this.places.length, "place")}, Enter for the next`
      : "no token has this text";
    this.list.replaceChildren(make("div", { class: "results-count muted" }, counts), ...options);
    this.list.hidden = !listed || !this.input.value.trim();
    this.list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }

  go(index) {
    this.at = (index + this.places.length) % this.places.length;
    const [name, place] = this.places[this.at];
    if (this.page.head) this.page.choose({ query: null, key: null, [name]: place }, true);
    else revealFound(this.page.table, name, place);
    this.fill(true);
  }

  key(event) {
    event.stopPropagation();
    if (event.key === "Escape") {
      this.clear();
      if (this.page.head) this.page.stage.element.focus();
      else this.page.table.focus(this.page.table.first());
    } else if (["Enter", "ArrowDown", "ArrowUp"].includes(event.key) && this.places.length) {
      event.preventDefault();
      const back = event.key === "ArrowUp" || event.shiftKey;
      this.go(back ? Math.max(this.at, 0) - 1 : this.at + 1);
    }
  }
}
