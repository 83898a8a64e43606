// The map of a head: a row for each query, a column for each key. At low zoom it shows the small map. At high zoom,
// where each position has a few pixels, the top keys of each row are drawn over it, with the remaining weight beside it.

const NEAR = 3; // pixels of a position from which single rows are drawn

class Heatmap {
  constructor(page) {
    this.page = page;
    this.canvas = make("canvas", { class: "map", tabIndex: 0, role: "img" });
    this.scale = make("div", { class: "map-scale" });
    this.foot = make("div", { class: "map-foot" }, this.scale, this.zooms());
    this.element = make("div", { class: "pane-body map-body" }, this.canvas, this.foot);
    this.draw = drawnLater(() => this.paint());
    new ResizeObserver(() => this.head && this.element.clientWidth && this.changed()).observe(this.element);
    gestures(this.canvas, {
      move: (x, y) => this.camera.move(x, y) || this.changed(),
      zoom: (x, y, factor) => this.camera.zoomAt(x - this.beside, y - this.top, factor) || this.changed(),
      hover: (x, y) => this.hover(x, y),
      leave: () => this.page.hover(null),
      choose: (x, y) => this.choose(x, y),
    });
  }

  zooms() {
    const button = (text, name, factor) => {
      const made = make("button", { type: "button", class: "icon", "aria-label": name, title: name }, text);
      made.addEventListener("click", () => this.zoom(factor));
      return made;
    };
    const buttons = [
      button("−", "Zoom out (−)", 1 / 1.6),
      button("+", "Zoom in (+)", 1.6),
      button("⤢", "All of the map (0)", 0),
    ];
    return make("div", { class: "zooms", role: "group", "aria-label": "Zoom" }, ...buttons);
  }

  open(head) {
    const same =
      this.head && head.queries.count === this.head.queries.count && head.keys.count === this.head.keys.count;
    this.head = head;
    if (!same) this.camera = new Camera(head.queries.count, head.keys.count);
    this.canvas.setAttribute(
      "aria-label",
      `Map of ${titleOf(head.info)}, ${head.name}: ${head.queries.count} queries by ${head.keys.count} keys`,
    );
    this.changed();
  }

  /** The visible part has changed: request its rows, and a finer map of it. */
  changed() {
    this.draw();
    tip(null);
    clearTimeout(this.asking);
    this.asking = setTimeout(() => this.page.attempt(() => this.sharpen()), 120);
  }

  async sharpen() {
    const { head } = this;
    const { zoom, seen } = this.camera;
    if (head.exact || !this.plotWidth || (head.tile && suffices(head.tile, zoom, seen))) return;
    const tile = await head.source.tile(head.site, head.head, seen.rows, seen.columns);
    if (!tile || head !== this.head) return;
    head.tile = { ...tile, zoom };
    this.draw();
  }

  zoom(factor) {
    if (!this.camera) return; // it was never visible
    if (factor === 0) this.camera.whole();
    else this.camera.zoomAt(this.camera.width / 2, this.camera.height / 2, factor);
    this.changed();
  }

  reveal(query, key) {
    this.camera.reveal(query, key);
    this.changed();
  }

  get near() {
    return this.head.exact || Math.min(this.camera.across, this.camera.down) >= NEAR;
  }

  /** The finer map to draw; at high zoom, rows have more detail than a map whose cells have several positions. */
  get tile() {
    const { tile } = this.head;
    return tile && (!this.near || single(tile)) ? tile : null;
  }

  /** The weight with the brightest colour. */
  get brightest() {
    const { head } = this;
    if (this.page.alike) return this.page.most;
    if (!this.near && !this.tile) return head.mapTop;
    return topOf(this.near ? head.most(...this.camera.seen.rows) : largest(this.tile.values), head.keys.count) || 1;
  }

  paint() {
    if (!this.head) return;
    const width = this.element.clientWidth;
    const below = this.foot.offsetHeight;
    const room = this.element.clientHeight - below;
    if (width < 1 || room < 1) return;
    arrange(this, width, room);
    const context = sharp(this.canvas, width, this.top + this.plotHeight + 8);
    context.font = FONT;
    this.colour = this.page.theme.scale;
    this.canvas.classList.toggle("zoomed", this.camera.zoom > 1);
    if (this.near) this.page.attempt(() => this.head.want(...this.camera.seen.rows));
    this.page.stage.frame(this.camera);
    context.save();
    context.translate(this.left, this.top);
    context.beginPath();
    context.rect(0, 0, this.plotWidth, this.plotHeight);
    context.clip();
    const drawn = this.page.stage.layers.drawn;
    if (drawn.length) paintLayers(this, context, drawn);
    else {
      paintGround(this, context);
      if (this.near) paintRows(this, context);
    }
    paintVeil(this, context);
    paintComing(this, context);
    this.paintChosen(context);
    context.restore();
    if (this.near && !this.head.complete) paintRest(this, context);
    paintLabels(this, context);
    paintTitles(this, context);
    this.tellScale();
    if (this.foot.offsetHeight !== below) this.draw(); // the legend takes a line more
  }

  /** Draw frames around the chosen row and column, and fainter ones under the pointer. */
  paintChosen(context) {
    const { camera } = this;
    const { query, key, hovered } = this.page;
    const frame = (place, colour, width, row) => {
      const [from, to] = row ? [camera.y(place), camera.y(place + 1)] : [camera.x(place), camera.x(place + 1)];
      const size = Math.max(to - from, 3);
      const start = (from + to - size) / 2;
      context.strokeStyle = colour;
      context.lineWidth = width;
      if (row) context.strokeRect(-4, start, this.plotWidth + 8, size);
      else context.strokeRect(start, -4, size, this.plotHeight + 8);
    };
    context.globalAlpha = 0.45;
    if (hovered && this.near) frame(hovered.query, this.page.theme.text, 1, true);
    if (hovered && this.near) frame(hovered.key, this.page.theme.text, 1, false);
    context.globalAlpha = 1;
    if (query !== null) frame(query, this.page.theme.query, 2, true);
    if (key !== null) frame(key, this.page.theme.key, 2, false);
  }

  hover(x, y) {
    const at = this.camera.at(x - this.left, y - this.top);
    const inside = this.within(x - this.left, this.plotWidth) && this.within(y - this.top, this.plotHeight);
    this.page.hover(at && inside ? at : null);
    if (at && inside) tip(this.told(at), this.canvas, x, y);
  }

  within(offset, size) {
    return offset >= 0 && offset < size;
  }

  /** The lines of the tooltip of a pair. */
  told({ query, key }) {
    const { head } = this;
    if (this.near) return [...pairTold(head, query, key), ...this.toldOthers(query, key)];
    const finer = this.tile && cellAt(this.tile, query, key);
    return cellTold(head, finer ?? cellAt(head.whole, query, key));
  }

  /** The weights of a pair in the heads that are drawn over this one. */
  toldOthers(query, key) {
    const others = this.page.stage.layers.drawn.slice(1);
    return others.map(({ head }) => ["plain", `${head.name}: ${head.figures(query, key)}`]);
  }

  choose(x, y) {
    const [across, down] = [x - this.left, y - this.top];
    const [column, row] = [this.within(across, this.plotWidth), this.within(down, this.plotHeight)];
    const at = this.camera.at(clamp(across, 0, this.plotWidth - 1), clamp(down, 0, this.plotHeight - 1));
    if (!at || (!row && !column)) return;
    const same = this.page.query === at.query && this.page.key === at.key;
    if (!column) this.page.choose({ query: at.query, key: null }); // its label, or its remaining weight
    else if (!row) this.page.choose({ query: null, key: at.key });
    else this.page.choose(same ? { query: null, key: null } : at);
  }

  tellScale() {
    const meaning = `${this.page.word} ${this.near ? "of a key" : "on a cell"}`;
    const drawn = this.page.stage.layers.drawn;
    const layered = drawn.map(({ head }) => head.name).join();
    const even = isEven(this.head.decided, this.head.keys.count);
    const told = `${meaning} ${this.brightest} ${this.page.theme.name} ${even} ${layered}`;
    if (this.scale.dataset.told === told) return;
    this.scale.dataset.told = told;
    const ticks = ticksOf(this.brightest);
    this.scale.replaceChildren(
      drawn.length ? layersLegend(this, drawn) : legend(this.page.theme, meaning, ticks),
      make("span", { class: "muted note" }, even ? "Nearly even weights." : ""),
    );
  }
}
