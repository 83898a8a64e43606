// The overview: a small map for each head, the layers of a stack below each other.

const SMALLEST_THUMB = 46; // pixels, including the gap

class Overview {
  constructor(page) {
    this.page = page;
    this.maps = new Map();
    this.over = this.reached = this.lit = null;
    this.element = make("div", { class: "overview" });
    this.seen = new IntersectionObserver((entries) => this.reveal(entries), { rootMargin: "400px" });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("focusin", (event) => this.tell(event.target));
    this.element.addEventListener("pointerover", (event) => this.tell(event.target));
    this.element.addEventListener("pointerleave", () => this.light(null));
    const groups = groupsOf(page.overview).map(([name, sites]) => this.group(name, sites));
    const { effects } = page.overview;
    this.effects = effects ? new EffectTable(page, effects) : null;
    this.element.append(this.intro(), make("div", { class: "groups" }, ...(effects ? [this.effects.element] : []), ...groups));
    const fit = ({ target, contentRect }) => this.fit(target, contentRect.width);
    this.fits = new ResizeObserver((entries) => entries.forEach(fit));
    groups.forEach((group) => this.fits.observe(group));
    this.first().tabIndex = 0;
    if (page.source.ahead === undefined) this.fill();
  }

  /** Paint maps that were not scrolled to when idle, since printing does not scroll. */
  async fill() {
    const idle = () => new Promise((resolve) => (window.requestIdleCallback ?? setTimeout)(resolve));
    for (const target of this.element.querySelectorAll(".layer[data-site]"))
      await idle().then(() => this.reveal([{ isIntersecting: true, target }]));
  }

  first() {
    return this.element.querySelector(".thumb");
  }

  intro() {
    const { title, notes, sites } = this.page.overview;
    const real = sites.filter(({ rollout }) => !rollout);
    const heads = real.reduce((sum, site) => sum + site.heads, 0);
    const told = `${counted(heads, "head")} at ${counted(real.length, "site")}. Choose one to see its ${this.page.word === "relevance" ? "map" : "weights"}${this.page.source.removing?.possible() ? "; shift and a click remove it" : ""}.`;
    this.scale = make("div", {});
    this.marked = make("p", { class: "muted marked" });
    const intro = make(
      "div",
      { class: "intro" },
      make("h1", {}, title),
      make("div", { class: "intro-line" }, make("div", {}, make("p", { class: "muted" }, told), this.marked), this.scale),
    );
    if (notes.length)
      intro.append(make("ul", { class: "notes" }, ...notes.map((note) => make("li", { dir: "auto" }, note))));
    const inputs = inputsOf(this.page.overview);
    if (inputs) intro.append(inputs);
    return intro;
  }

  group(name, sites) {
    const { overview } = this.page;
    const heads = Math.max(...sites.map((place) => overview.sites[place].heads));
    const sizes = sites.map((place) => this.size(overview.sites[place]));
    const same = sizes.every((size) => size === sizes[0]);
    const { rollout } = overview.sites[sites[0]];
    const told = [
      rollout && "half the weights, half the residual, through all layers",
      sites.length > 1 && counted(sites.length, "layer"),
      !rollout && counted(heads, "head"),
      same && sizes[0],
    ];
    const grid = make("div", { class: "layers", role: "grid", "aria-label": name });
    if (heads > 1) {
      const numbers = Array.from({ length: heads }, (_, head) => make("span", {}, String(head)));
      numbers.push(make("span", {}, "mean"));
      grid.append(
        make(
          "div",
          { class: "layer numbers", "aria-hidden": "true" },
          make("span", { class: "layer-name" }, "head"),
          make("div", { class: "maps" }, ...numbers),
        ),
      );
    }
    sites.forEach((place, row) => grid.append(this.layer(place, same ? "" : sizes[row])));
    const parts = name.split(/(\*)/).map((part) => (part === "*" ? make("span", { class: "star" }, "∗") : part));
    const title = make("h2", {}, ...parts);
    const line = make(
      "div",
      { class: "group-head" },
      title,
      make("span", { class: "muted" }, told.filter(Boolean).join(" · ")),
    );
    const group = make("section", { class: "group" }, line, grid);
    group.style.setProperty("--heads", heads > 1 ? heads + 1 : heads);
    return group;
  }

  /** On a narrow screen the heads of a layer are in several lines of equal length. */
  fit(group, width) {
    const heads = Number(group.style.getPropertyValue("--heads"));
    const lines = Math.ceil((heads * SMALLEST_THUMB) / width);
    group.style.setProperty("--columns", Math.ceil(heads / lines));
    group.classList.toggle("wrapped", lines > 1);
  }

  size(site) {
    const { sides } = this.page.overview;
    return `${count(sides[site.queries].count)} × ${count(sides[site.keys].count)}`;
  }

  layer(place, size) {
    const site = this.page.overview.sites[place];
    const maps = make("div", { class: "maps" });
    for (let head = 0; head < countMaps(site); head++) {
      const thumb = make("button", {
        type: "button",
        class: site.rollout || isMean(site, head) ? "thumb derived" : "thumb",
        role: "gridcell",
        tabIndex: -1,
        "aria-label": `${titleOf(site)}, ${nameOfHead(site, head)}`,
      });
      thumb.dataset.site = place;
      thumb.dataset.head = head;
      thumb.append(make("canvas", { "aria-hidden": "true" }));
      if (isMean(site, head)) thumb.append(make("span", { class: "thumb-name", "aria-hidden": "true" }, "mean"));
      thumb.addEventListener("click", (event) => (event.shiftKey && this.page.remove(place, head)) || this.page.open(place, head));
      thumb.classList.toggle("removed-head", this.page.removed(place, head));
      maps.append(withTokens(this.page.overview, site, thumb));
    }
    const label = make(
      "span",
      { class: "layer-name" },
      make("span", { class: "layer-word" }, "layer "),
      site.layer || "",
      size ? make("small", {}, size) : "",
    );
    const layer = make("div", { class: site.layer ? "layer" : "layer alone", role: "row" }, label, maps);
    layer.dataset.site = place;
    this.seen.observe(layer);
    return layer;
  }

  async reveal(entries) {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting || this.page.table !== this) continue; // another overview may be there by now
      await this.page.attempt(async () => {
        const site = Number(target.dataset.site);
        this.maps.set(site, await this.page.maps(site));
        this.seen.unobserve(target); // until then it is requested again whenever it becomes visible
        this.paint(target);
      });
    }
  }

  /** Paint the maps of a layer, or of all loaded layers. */
  paint(layer) {
    const layers = layer ? [layer] : this.element.querySelectorAll(".layer[data-site]");
    for (const each of layers) {
      const maps = this.maps.get(Number(each.dataset.site));
      if (!maps) continue;
      each.querySelectorAll(".thumb").forEach((thumb, head) => this.paintHead(thumb, head, maps));
    }
    this.tellScale();
    this.effects?.paint();
    markHeads(this);
  }

  paintHead(thumb, head, maps) {
    const { overview, theme, alike, most } = this.page;
    const { rows, columns, values } = maps;
    const map = values.subarray(head * rows * columns, (head + 1) * rows * columns);
    const site = overview.sites[thumb.dataset.site];
    Object.assign(thumb, judge(map, rows, columns));
    thumb.decided = site.rollout ? null : decision(overview, thumb.dataset.site, head, maps);
    const even = isEven(thumb.decided, overview.sides[site.keys].count);
    thumb.classList.toggle("even", even);
    thumb.setAttribute("aria-label", `${titleOf(site)}, ${nameOfHead(site, head)}${even ? ", nearly even" : ""}`);
    paintMap(thumb.firstChild, map, rows, columns, alike ? most : thumb.top || 1, theme.scale);
    thumb.firstChild.classList.add("painted");
  }

  /** The legend, with the numbers of the head under the pointer if each head has its own scale. */
  tellScale(thumb = this.over) {
    this.over = thumb; // a layer that is painted later keeps it
    const { alike, theme, most, word } = this.page;
    const top = alike ? most : thumb?.top;
    const ticks = top ? ticksOf(top) : numbers.signed ? ["−", "0", "+"] : ["0", "¼", "largest"];
    const site = thumb && this.page.overview.sites[thumb.dataset.site];
    const meaning = `${thumb && !alike ? `${nameOfHead(site, Number(thumb.dataset.head))}, ` : ""}${word} on a cell`;
    this.scale.replaceChildren(legend(theme, meaning, ticks));
  }

  /** Show the name of the head under the pointer or the focus, and its scale. */
  tell(target) {
    const thumb = target.closest(".thumb");
    this.tellScale(thumb);
    this.light(target.closest(".piece"));
    if (!thumb) return;
    const site = this.page.overview.sites[thumb.dataset.site];
    const told = isMean(site, Number(thumb.dataset.head)) ? [] : [spread(site.entropy[thumb.dataset.head])];
    thumb.title = [thumb.getAttribute("aria-label"), ...told].join("\n");
  }

  /** Light the row and the column of a token of the inputs in every head; without one, that of the search. */
  light(piece) {
    const at = piece ? { side: Number(piece.dataset.side), place: Number(piece.dataset.place) } : this.reached;
    if (at?.side === this.lit?.side && at?.place === this.lit?.place) return;
    this.lit = at;
    const { sites, sides } = this.page.overview;
    for (const thumb of this.element.querySelectorAll(".thumb")) {
      const { queries, keys } = sites[thumb.dataset.site];
      const place = (side) => (at?.side === side ? at.place : null);
      lightPair(thumb, place(queries), place(keys), sides[queries].count, sides[keys].count);
    }
  }

  key(event) {
    const thumb = event.target.closest(".thumb");
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (!thumb || !(event.key in steps)) return;
    event.preventDefault();
    const layers = [...this.element.querySelectorAll(".layer[data-site]")].map((layer) => [
      ...layer.querySelectorAll(".thumb"),
    ]);
    const [down, right] = steps[event.key];
    const row = clamp(layers.findIndex((layer) => layer.includes(thumb)) + down, 0, layers.length - 1);
    const head = clamp(Number(thumb.dataset.head) + right, 0, layers[row].length - 1);
    this.focus(layers[row][head]);
  }

  focus(thumb) {
    for (const each of this.element.querySelectorAll('.thumb[tabindex="0"]')) each.tabIndex = -1;
    thumb.tabIndex = 0;
    thumb.focus();
  }

  /** Focus a head, for example after leaving it. */
  show(site, head) {
    this.focus(this.element.querySelector(`.thumb[data-site="${site}"][data-head="${head}"]`) ?? this.first());
  }
}
