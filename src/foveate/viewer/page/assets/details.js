// The panel beside the views: the chosen query with its largest weights, the chosen key with its queries, and the head.

const LISTED = 10;
const LISTED_BESIDE = 5; // of each of two heads
const FEW = 4096; // up to this many queries, all rows are requested, to list those that attend to a key

class Details {
  constructor(page, name = "Numbers") {
    this.page = page;
    this.element = make("aside", { class: "details", "aria-label": name });
    this.draw = drawnLater(() => this.paint());
  }

  open(head) {
    this.head = head;
    this.draw();
  }

  get listed() {
    return this.page.stage.beside.on ? LISTED_BESIDE : LISTED;
  }

  paint() {
    const { head, page } = this;
    if (!head) return;
    if (page.query !== null) page.attempt(() => head.want(page.query, page.query + 1));
    if (page.key !== null && head.queries.count <= FEW) page.attempt(() => head.want(0, FEW));
    const parts = [];
    if (page.stage.beside.on) parts.push(make("h2", { class: "details-of" }, `${titleOf(head.info)}, ${head.name}`));
    if (page.query !== null) parts.push(this.query(page.query));
    if (page.key !== null) parts.push(this.key(page.key));
    if (page.query === null && page.key === null)
      parts.push(make("p", { class: "muted hint" }, "Choose a row of the map or a token to see its numbers."));
    parts.push(this.about());
    refill(this.element, ...parts);
  }

  query(query) {
    const { head, listed } = this;
    const row = head.row(query);
    const section = make("section", {}, this.heading("query", head.queries, query, "looks at"));
    if (!row) {
      section.append(make("p", { class: "muted hint" }, COMING));
      return section;
    }
    const top = head.top(query);
    const most = top[0]?.weight ?? 1;
    const list = make("ol", { class: "bars" });
    for (const { key, weight } of top.slice(0, listed)) list.append(this.bar("key", head.keys, key, weight, most));
    const later = top.slice(listed).reduce((sum, { weight }) => sum + weight, 0);
    const others = Math.max(0, (head.reach?.size(query) ?? head.keys.count) - Math.min(listed, top.length));
    if (!top.length) section.append(make("p", { class: "muted hint" }, "nowhere: no key has weight"));
    else if (head.part) section.append(make("p", { class: "muted hint" }, "only keys of the chosen text"));
    else if (later + row.rest > 0) list.append(this.others(`${counted(others, "other key")}`, later + row.rest, most));
    section.append(list);
    return section;
  }

  key(key) {
    const { head, page, listed } = this;
    const section = make("section", {}, this.heading("key", head.keys, key, "is looked at by"));
    if (page.query !== null) {
      const told = make("b", {}, head.figures(page.query, key));
      section.append(make("p", { class: "pair" }, "the query above, weight: ", told, " ", this.remover(page.query, key)));
    }
    const found = head.lookers(key);
    const list = make("ol", { class: "bars" });
    for (const { query, weight } of found.slice(0, listed))
      list.append(this.bar("query", head.queries, query, weight, found[0].weight));
    const say = (text, style) => section.append(make("p", { class: style }, text));
    const [here, all] = [head.here, head.queries.count];
    if (!found.length && here === all)
      say(head.complete ? "no query" : `among the top ${head.kept} of no query`, "muted hint");
    section.append(list);
    if (found.length > listed) say(`and ${count(found.length - listed)} more`, "muted");
    if (here < all) {
      const none = found.length ? "" : "none yet: ";
      say(`${none}${count(here)} of ${count(all)} queries are here so far`, "muted");
    }
    return section;
  }

  /** The button that runs the model without the weight of a pair, or with it again; nothing where that cannot be. */
  remover(query, key) {
    const { head, page } = this;
    const without = page.removed(head.site, head.head);
    if (!page.removable(head.site, head.head) || without || !head.row(query)) return "";
    const pair = { query, key };
    const button = make("button", { type: "button", class: "small" }, page.removed(head.site, head.head, pair) ? "Bring it back" : "Remove it");
    const told = `${cut(head.queries.label(query), 20)} → ${cut(head.keys.label(key), 20)}`;
    button.addEventListener("click", () => page.remove(head.site, head.head, pair, told));
    return button;
  }

  heading(name, side, place, verb) {
    const told = side.told ? ` ${count(place)}` : "";
    return make(
      "div",
      { class: "heading" },
      make("span", { class: "muted" }, `${name}${told}`),
      make("bdi", { class: `chosen ${name}` }, cut(side.label(place), 48)),
      make("span", { class: "muted" }, verb),
    );
  }

  bar(name, side, place, weight, most) {
    const fill = make("span", { class: `bar-fill ${name}` });
    fill.style.width = `${Math.abs((100 * weight) / most)}%`;
    if (weight < 0) fill.classList.add("less");
    const button = make(
      "button",
      { type: "button", class: "bar" },
      make("bdi", { class: "bar-name" }, cut(side.label(place), 40)),
      make("span", { class: "bar-place" }, side.told ? count(place) : ""),
      make("span", { class: "bar-weight" }, figures(weight)),
      make("span", { class: "bar-line" }, fill),
    );
    button.addEventListener("click", () => this.page.choose({ [name]: place }, true));
    return make("li", {}, button);
  }

  others(told, weight, most) {
    const fill = make("span", { class: "bar-fill rest" });
    fill.style.width = `${Math.min(100, (100 * weight) / most)}%`;
    return make(
      "li",
      {},
      make(
        "div",
        { class: "bar" },
        make("span", { class: "bar-name muted" }, told),
        make("span", {}),
        make("span", { class: "bar-weight" }, figures(weight)),
        make("span", { class: "bar-line" }, fill),
      ),
    );
  }

  about() {
    const { head } = this;
    const named = [
      ["Site", titleOf(head.info)],
      ["Head", head.mean || head.info.rollout ? head.name : `${head.head} of ${head.info.heads}`],
    ];
    const rows = [
      ...(this.page.stage.beside.on ? [] : named),
      ["Size", `${count(head.queries.count)} queries × ${count(head.keys.count)} keys`],
      ...(head.mean && head.entropy === null ? [] : [["Spread", spread(head.entropy)]]),
      ["Exact", head.exactness],
    ];
    return make(
      "dl",
      { class: "about" },
      ...rows.flatMap(([term, text]) => [make("dt", {}, term), make("dd", {}, text)]),
    );
  }
}
