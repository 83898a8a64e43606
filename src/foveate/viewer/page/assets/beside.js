// A second head beside the open one: another head of the page, or the same head of the other text or model of a page of two.

const PAIRED = { A: "B", B: "A" }; // how the names of sites begin, as `foveate.viewer.beside` writes them

/** The site of the other text or model that has the same name; undefined if the page has only one of them. */
function counterpart(sites, site) {
  const { name } = sites[site];
  if (!/^[AB]([.#]|$)/.test(name)) return undefined;
  const found = sites.findIndex((other) => other.name === PAIRED[name[0]] + name.slice(1));
  return found < 0 ? undefined : found;
}

class Beside {
  constructor(page) {
    Object.assign(this, { page, on: null, head: null, query: null, key: null, hovered: null });
    this.button = make("button", { type: "button", class: "small", "aria-pressed": "false" }, "Beside");
    this.button.title = "Show a second head beside this one";
    this.button.addEventListener("click", () => this.switch(!this.on));
    const chosen = () => this.show(Number(this.sites.value), Number(this.heads.value));
    this.sites = make("select", { "aria-label": "Site beside" });
    page.overview.sites.forEach((site, place) => this.sites.append(make("option", { value: place }, titleOf(site))));
    this.heads = make("select", { "aria-label": "Head beside" });
    this.sites.addEventListener("change", chosen);
    this.heads.addEventListener("change", chosen);
    this.element = make(
      "section",
      { class: "pane beside-pane", "aria-label": "Second head", hidden: true },
      make("div", { class: "beside-head" }, this.sites, this.heads),
    );
    this.details = new Details(pageBeside(this), "Numbers of the second head");
    this.details.element.hidden = true;
  }

  /** The second map. It is made when it is first shown: most pages show one map alone. */
  get view() {
    if (!this.heatmap) {
      this.heatmap = new Heatmap(pageBeside(this));
      this.element.append(this.heatmap.element);
    }
    return this.heatmap;
  }

  switch(on) {
    this.on = on;
    this.page.attempt(() => this.open(this.page.head));
  }

  /** Switch on with a head of a site. */
  put(site, head) {
    this.switch(true);
    this.show(site, head);
  }

  /** A head is open: show one beside it, the one that was there, or what corresponds to it in a page of two. */
  async open(head) {
    const { sites } = this.page.overview;
    const other = counterpart(sites, head.site);
    this.on ??= other !== undefined;
    this.button.hidden = sites.length === 1 && sites[0].heads === 1;
    this.button.setAttribute("aria-pressed", String(this.on));
    this.element.hidden = this.details.element.hidden = !this.on;
    this.page.stage.details.draw(); // which lists less beside another
    this.page.stage.arrange();
    if (!this.on) return;
    const follows = other !== undefined && (!this.head || this.follows);
    if (follows) await this.show(other, head.head);
    else if (this.head) this.update();
    else await this.show(head.site, (head.head + 1) % countMaps(head.info));
  }

  /** Show a head of a site. */
  async show(site, head) {
    const { page } = this;
    const turn = (this.turn = {});
    const info = page.overview.sites[site];
    await page.attempt(async () => {
      const maps = await page.maps(site);
      if (turn !== this.turn || !page.head) return;
      this.head = new Head(page.source, page.overview, site, clamp(head, 0, countMaps(info) - 1), maps);
      this.head.arrived = () => this.update();
      this.follows = counterpart(page.overview.sites, page.head.site) === site && page.head.head === this.head.head;
      for (const name of ["query", "key"]) if (this[name] >= this.side(name).count) this[name] = null;
      this.hovered = null;
      const names = Array.from({ length: countMaps(info) }, (_, place) => nameOfHead(info, place));
      this.heads.replaceChildren(...names.map((name, value) => make("option", { value }, name)));
      [this.sites.value, this.heads.value] = [site, this.head.head];
      this.view.open(this.head);
      this.details.open(this.head);
      this.update();
    });
  }

  side(name) {
    return name === "query" ? this.head.queries : this.head.keys;
  }

  /** Whether both heads have the same queries, or the same keys: then a choice counts for both. */
  shares(name) {
    const side = name === "query" ? "queries" : "keys";
    return this.page.head?.info[side] === this.head.info[side];
  }

  place(name) {
    return this.shares(name) ? this.page[name] : this[name];
  }

  choose(chosen, reveal) {
    const shared = {};
    for (const [name, place] of Object.entries(chosen)) {
      if (this.shares(name)) shared[name] = place;
      else this[name] = place;
    }
    if (reveal) this.view.reveal(chosen.query ?? null, chosen.key ?? null);
    if (Object.keys(shared).length) this.page.choose(shared, reveal);
    else this.update();
  }

  hover(at) {
    this.hovered = at;
    const shared = (name) => (this.shares(name) ? at[name] : undefined);
    this.page.hover(at && { query: shared("query"), key: shared("key") });
    this.view.draw();
  }

  /** The places under the pointer, on either map. */
  get pointed() {
    const { hovered } = this.page;
    const place = (name) => (this.shares(name) ? hovered?.[name] : this.hovered?.[name]);
    return hovered || this.hovered ? { query: place("query"), key: place("key") } : null;
  }

  reveal(query, key) {
    if (!this.on || !this.head) return;
    this.view.reveal(this.shares("query") ? query : null, this.shares("key") ? key : null);
  }

  update() {
    if (!this.on || !this.head || !this.page.head) return;
    this.head.part = this.shares("query") && this.shares("key") ? this.page.head.part : null;
    this.details.draw();
    this.view.draw();
  }
}

/** The page as the second map sees it. */
function pageBeside(beside) {
  const { page } = beside;
  const player = { get playing() { return page.stage.player.playing && beside.shares("query"); } };
  const has = (get) => ({ get });
  return Object.create(page, {
    stage: { value: { layers: { drawn: [] }, player, beside, frame() {} } },
    head: has(() => beside.head),
    query: has(() => beside.place("query")),
    key: has(() => beside.place("key")),
    hovered: has(() => beside.pointed),
    found: { value: (name) => (beside.shares(name) ? page.found(name) : new Set()) },
    hover: { value: (at) => beside.hover(at) },
    choose: { value: (chosen, reveal = false) => beside.choose(chosen, reveal) },
  });
}
