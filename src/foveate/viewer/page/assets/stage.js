// One open head: back button, neighbours, views side by side or one by one, and its numbers.

const WIDE = "(min-width: 1500px)"; // two views fit side by side

class Stage {
  constructor(page) {
    this.page = page;
    this.views = { map: new Heatmap(page), lines: new Lines(page), picture: new Picture(page) };
    this.details = new Details(page);
    this.layers = new Layers(page);
    this.parts = new Parts(page);
    this.player = new Player(page);
    this.beside = new Beside(page);
    this.sites = make("select", { "aria-label": "Site" });
    this.sites.addEventListener("change", () => page.open(Number(this.sites.value), page.head.head));
    page.overview.sites.forEach((site, place) => this.sites.append(make("option", { value: place }, titleOf(site))));
    const back = make(
      "button",
      { type: "button", class: "back" },
      make("span", { "aria-hidden": "true" }, "←"),
      " Overview",
    );
    back.addEventListener("click", () => page.back());
    const tools = page.framed ? [] : [headTools(page)]; // a notebook has a single address, and allows no downloads
    this.name = make("h1", { class: "head-name" });
    this.film = make("div", { class: "film", role: "group", "aria-label": "Heads of this site" });
    this.tabs = make("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
    const choices = make("div", { class: "view-choices" }, this.parts.list, this.layers.button, this.beside.button, this.player.element);
    this.bar = make("div", { class: "view-bar" }, this.tabs, choices);
    this.first = make("div", { class: "pane", id: "view", role: "tabpanel", tabIndex: -1 });
    this.second = make("div", { class: "pane" });
    this.panes = make("div", { class: "panes" }, this.first, this.second, this.beside.element);
    this.remove = make("button", { type: "button", class: "small", hidden: true });
    this.remove.addEventListener("click", () => page.remove(page.head.site, page.head.head));
    this.element = make(
      "div",
      { class: "stage", tabIndex: -1 },
      make("nav", { class: "crumbs", "aria-label": "Which head" }, back, this.sites, this.name, this.remove, ...tools),
      this.film,
      this.bar,
      this.panes,
      make("div", { class: "numbers-of" }, this.details.element, this.beside.details.element),
    );
  }

  open(head, maps) {
    this.sites.value = head.site;
    this.name.textContent = head.name;
    this.remove.hidden = !this.page.removable(head.site, head.head);
    this.remove.textContent = this.page.removed(head.site, head.head) ? "Bring it back" : "Remove this head";
    this.layers.open(head, maps);
    this.parts.open(head);
    this.fillFilm(head, maps);
    this.head = head;
    this.arrange();
    this.details.open(head);
    this.page.attempt(() => this.beside.open(head));
  }

  /** The views of this head, the preferred one first: the picture, if the keys are one. */
  get names() {
    const lines = numbers.signed ? [] : ["lines"]; // a line has no sign
    return ["map", ...lines, ...(this.head.keys.picture ? ["picture"] : [])];
  }

  get chosen() {
    const preferred = this.page.view ?? (this.head.keys.picture ? "picture" : "map");
    return this.names.includes(preferred) ? preferred : "map";
  }

  /** Whether two views of the head are side by side: there is room, and no second head needs it. */
  get double() {
    return this.page.wide.matches && !this.beside.on;
  }

  /** The visible views: the chosen one, and the map if there is room. */
  get shown() {
    const { chosen } = this;
    if (!this.double) return [chosen];
    return [...new Set(["map", chosen === "map" ? this.names.at(-1) : chosen])];
  }

  arrange() {
    if (!this.head) return;
    const { shown } = this;
    if (shown.includes("picture")) this.page.query ??= 0;
    const titles = {
      map: "Map",
      lines: "Lines",
      picture: this.head.keys.picture?.kind === "audio" ? "Sound" : "Picture",
    };
    const offered = this.double ? this.names.filter((name) => name !== "map") : this.names;
    const current = shown[shown.length - 1];
    const tabs = offered.map((name) => {
      const tab = make(
        "button",
        {
          type: "button",
          role: "tab",
          class: "tab",
          "aria-selected": String(name === current),
          "aria-controls": "view",
        },
        titles[name],
      );
      tab.addEventListener("click", () => this.page.show(name));
      return tab;
    });
    refill(this.tabs, ...tabs);
    this.bar.classList.toggle("beside", shown.length > 1);
    this.panes.classList.toggle("two", Boolean(this.beside.on));
    this.put(this.first, shown.slice(0, 1));
    this.put(this.second, shown.slice(1));
    this.second.hidden = shown.length === 1;
    for (const name of shown) this.views[name].open(this.head);
  }

  /** Put views into a pane; a view that is there stays, since an inserted list loses its scroll position. */
  put(pane, names) {
    const elements = names.map((name) => this.views[name].element);
    if (elements.some((element) => element.parentNode !== pane) || pane.childElementCount !== elements.length)
      pane.replaceChildren(...elements);
  }

  fillFilm(head, maps) {
    const { page } = this;
    const size = maps.rows * maps.columns;
    const thumbs = Array.from({ length: countMaps(head.info) }, (_, place) => {
      const name = nameOfHead(head.info, place);
      const thumb = make(
        "button",
        {
          type: "button",
          class: "thumb",
          "aria-label": name,
          "aria-pressed": String(place === head.head),
          title: name,
        },
        make("canvas", { class: "painted", "aria-hidden": "true" }),
        make("span", { class: "thumb-name", "aria-hidden": "true" }, isMean(head.info, place) ? "mean" : String(place)),
      );
      const map = maps.values.subarray(place * size, (place + 1) * size);
      const top = page.alike ? page.most : topOf(largest(map), maps.columns) || 1;
      paintMap(thumb.firstChild, map, maps.rows, maps.columns, top, page.theme.scale);
      thumb.addEventListener("click", () => (this.layers.on ? this.layers.toggle(place) : page.open(head.site, place)));
      return thumb;
    });
    this.layers.mark(thumbs);
    refill(this.film, ...thumbs);
    const chosen = thumbs[head.head];
    if (this.film.contains(document.activeElement)) chosen.focus({ preventScroll: true });
    this.film.scrollLeft = chosen.offsetLeft - this.film.clientWidth / 2;
    this.part = make("span", { class: "thumb-part", hidden: true });
    chosen.append(this.part);
  }

  /** Mark the visible part on the small map. */
  frame({ left, top, room, height, across, down, columns, rows, zoom }) {
    this.part.hidden = zoom === 1;
    const share = (part) => `${Math.min(100, 100 * part)}%`;
    const box = [
      ["left", left / columns],
      ["top", top / rows],
      ["width", room / across / columns],
      ["height", height / down / rows],
    ];
    for (const [name, part] of box) this.part.style[name] = share(part);
  }

  /** The choice, the search or the pointer has changed, or rows are loaded. */
  update(details = true) {
    if (!this.head) return;
    for (const name of this.shown) this.views[name].draw();
    this.beside.update();
    if (details) this.details.draw();
    const { hovered, query, key } = this.page;
    this.light(hovered ?? { query, key });
  }

  /** Light the row and the column of a pair in every head of this site. */
  light({ query, key }) {
    const { queries, keys } = this.head;
    for (const thumb of this.film.children)
      lightPair(thumb, query ?? null, key ?? null, queries.count, keys.count);
  }

  reveal(query, key) {
    for (const name of this.shown) this.views[name].reveal(query, key);
    this.beside.reveal(query, key);
  }
}
