// Search: all positions of queries and keys whose token has a text, to step through or to choose from.

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

  show(shown) {
    this.box.hidden = !shown;
    if (!shown) this.clear();
    else if (this.input.value) this.look(false);
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
    const { head } = this.page;
    const plain = (text) => text.normalize("NFC").toLowerCase(); // an umlaut may be one character or two
    const wanted = plain(this.input.value.trim());
    const among = (side) => {
      const found = [];
      for (let place = 0; wanted && place < side.count; place++) {
        if (plain(side.label(place)).includes(wanted) || String(place) === wanted) found.push(place);
      }
      return found;
    };
    const [queries, keys] = head ? [among(head.queries), among(head.keys)] : [[], []];
    this.page.match({ queries: new Set(queries), keys: new Set(keys) });
    this.places = [...queries.map((place) => ["query", place]), ...keys.map((place) => ["key", place])];
    this.at = -1;
    this.fill(listed);
  }

  fill(listed) {
    const { head } = this.page;
    const from = clamp(this.at - SHOWN / 2, 0, Math.max(0, this.places.length - SHOWN));
    const options = this.places.slice(from, from + SHOWN).map(([name, place], index) => {
      const side = name === "query" ? head.queries : head.keys;
      const option = make(
        "div",
        { role: "option", class: "option", "aria-selected": String(from + index === this.at) },
        make("bdi", { class: `option-text ${name}` }, cut(side.label(place), 32)),
        make("span", { class: "muted" }, `${name} ${count(place)}`),
      );
      option.addEventListener("click", () => this.go(from + index));
      return option;
    });
    const told = this.places.length
      ? `${this.at < 0 ? "" : `${this.at + 1} of `}${counted(this.places.length, "place")}, Enter for the next`
      : "no token has this text";
    this.list.replaceChildren(make("div", { class: "results-count muted" }, told), ...options);
    this.list.hidden = !listed || !this.input.value.trim();
    this.list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }

  go(index) {
    this.at = (index + this.places.length) % this.places.length;
    const [name, place] = this.places[this.at];
    this.page.choose({ query: null, key: null, [name]: place }, true);
    this.fill(true);
  }

  key(event) {
    event.stopPropagation();
    if (event.key === "Escape") {
      this.clear();
      this.page.stage.element.focus();
    } else if (["Enter", "ArrowDown", "ArrowUp"].includes(event.key) && this.places.length) {
      event.preventDefault();
      const back = event.key === "ArrowUp" || event.shiftKey;
      this.go(back ? Math.max(this.at, 0) - 1 : this.at + 1);
    }
  }
}
