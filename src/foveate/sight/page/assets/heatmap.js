// The map of a head: a row for each query, a column for each key. From afar it shows the small map; from near, where each
// place has a few pixels, each row's top keys are drawn over it, and beside it what remains for the others.

const NEAR = 3; // pixels of a place from which rows are drawn one by one
const WRITTEN = 34; // pixels of a cell in which its weight is written

class Heatmap {
  constructor(page) {
    this.page = page;
    this.canvas = make("canvas", { class: "map", tabIndex: 0, role: "img" });
    this.scale = make("div", { class: "map-scale" });
    this.foot = make("div", { class: "map-foot" }, this.scale, this.zooms());
    this.element = make("div", { class: "pane-body map-body" }, this.canvas, this.foot);
    this.draw = drawnLater(() => this.paint());
    this.tiles = [];
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.element);
    gestures(this.canvas, {
      move: (x, y) => this.camera.move(x, y) || this.changed(),
      zoom: (x, y, factor) => this.camera.zoomAt(x - this.left, y - this.top, factor) || this.changed(),
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
    const buttons = [button("−", "Zoom out (−)", 1 / 1.6), button("+", "Zoom in (+)", 1.6), button("⤢", "All of the map (0)", 0)];
    return make("div", { class: "zooms", role: "group", "aria-label": "Zoom" }, ...buttons);
  }

  open(head) {
    const same = this.head && head.queries.count === this.head.queries.count && head.keys.count === this.head.keys.count;
    this.head = head;
    this.tiles = [];
    if (!same) this.camera = new Camera(head.queries.count, head.keys.count);
    this.canvas.setAttribute("aria-label", `Map of ${head.info.name}, head ${head.head}: ${head.queries.count} queries by ${head.keys.count} keys`);
    this.changed();
  }

  /** What is seen is another part: ask for its rows, and for a finer map of it. */
  changed() {
    this.draw();
    const { rows, columns } = this.camera.seen;
    clearTimeout(this.asking);
    this.asking = setTimeout(() => this.page.attempt(() => this.sharpen(rows, columns)), 120);
  }

  async sharpen(rows, columns) {
    if (this.head.exact) return;
    const head = this.head;
    const tile = await head.source.tile(head.site, head.head, rows, columns);
    if (!tile || head !== this.head) return;
    this.tiles = [tile];
    this.draw();
  }

  zoom(factor) {
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

  /** The weight that has the brightest colour. */
  get brightest() {
    if (this.page.alike) return 1;
    return this.near ? this.head.peak || 1 : this.head.mapTop;
  }

  paint() {
    if (!this.head) return;
    const width = this.element.clientWidth;
    const room = this.element.clientHeight - this.foot.offsetHeight;
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
    this.paintGround(context);
    if (this.near) this.paintRows(context);
    this.paintChosen(context);
    context.restore();
    if (this.near && !this.head.exact) paintRest(this, context);
    paintLabels(this, context);
    this.tellScale();
  }

  paintGround(context) {
    const { head, near } = this;
    context.fillStyle = this.colour.css[0];
    context.fillRect(0, 0, this.plotWidth, this.plotHeight);
    if (head.exact) return;
    const whole = { rows: [0, head.queries.count], columns: [0, head.keys.count], height: head.rows, width: head.columns, values: head.map };
    this.paintTile(context, { ...whole, value: near ? (row, column) => head.rest(row)[column] : null });
    for (const tile of this.tiles) this.paintTile(context, tile);
    if (near && head.causal) this.paintFuture(context);
  }

  /** A map of a part: from near the weight of a cell is shared evenly by its keys, unless `value` knows better. */
  paintTile(context, { rows, columns, height, width, values, value }) {
    const { camera, near, brightest } = this;
    const over = cells(rows[1] - rows[0], height).map((place) => place + rows[0]);
    const along = cells(columns[1] - columns[0], width).map((place) => place + columns[0]);
    value ??= (row, column) => values[row * width + column] / (near ? along[column + 1] - along[column] : 1);
    for (let row = 0; row < height; row++) {
      const [top, bottom] = [Math.round(camera.y(over[row])), Math.round(camera.y(over[row + 1]))];
      if (bottom < 0 || top > this.plotHeight) continue;
      for (let column = 0; column < width; column++) {
        const [left, right] = [Math.round(camera.x(along[column])), Math.round(camera.x(along[column + 1]))];
        if (right < 0 || left > this.plotWidth) continue;
        context.fillStyle = this.colour.colour(value(row, column), brightest);
        context.fillRect(left, top, right - left, bottom - top);
      }
    }
  }

  /** Keys after the query, where none has weight: cells of the small map reach over the diagonal. */
  paintFuture(context) {
    const { rows } = this.camera.seen;
    context.fillStyle = this.colour.css[0];
    for (let query = rows[0]; query < rows[1]; query++) {
      const [top, bottom] = [Math.round(this.camera.y(query)), Math.round(this.camera.y(query + 1))];
      const left = Math.max(0, Math.round(this.camera.x(query + 1)));
      context.fillRect(left, top, this.plotWidth, bottom - top);
    }
  }

  paintRows(context) {
    const { head, camera, brightest } = this;
    const { rows, columns } = camera.seen;
    const gap = Math.min(camera.across, camera.down) >= 9 ? 1 : 0;
    const written = Math.min(camera.across, camera.down) >= WRITTEN;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let query = rows[0]; query < rows[1]; query++) {
      const row = head.row(query);
      if (!row) continue;
      const [top, bottom] = [Math.round(camera.y(query)), Math.round(camera.y(query + 1))];
      row.keys.forEach((key, place) => {
        if (key < columns[0] || key >= columns[1]) return;
        const weight = row.weights[place];
        const [left, right] = [Math.round(camera.x(key)), Math.round(camera.x(key + 1))];
        const step = this.colour.step(weight, brightest);
        context.fillStyle = this.colour.css[step];
        context.fillRect(left, top, right - left - gap, bottom - top - gap);
        if (!written || weight < 0.005) return;
        context.fillStyle = readable(this.colour.bytes[step]);
        context.fillText(weight.toFixed(2).replace(/^0/, ""), (left + right - gap) / 2, (top + bottom - gap) / 2);
      });
    }
  }

  /** Frames around the chosen row and column, fainter ones around those under the pointer. */
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
    const inside = x < this.left + this.plotWidth && y < this.top + this.plotHeight;
    this.page.hover(at && inside ? at : null);
    if (at && inside) this.page.tip(this.told(at), this.canvas, x, y);
  }

  /** What is known of a pair, as lines of a tip. */
  told({ query, key }) {
    const { head } = this;
    if (this.near) return pairTold(head, query, key);
    const { rows, columns, value } = head.cell(query, key);
    return [
      ["query", `queries ${rows[0]} to ${rows[1] - 1}`],
      ["key", `keys ${columns[0]} to ${columns[1] - 1}`],
      ["", `together ${figures(value)}, as the mean of the queries`],
      ["muted", "zoom in for single weights"],
    ];
  }

  choose(x, y) {
    const across = x - this.left;
    const at = this.camera.at(clamp(across, 0, this.plotWidth - 1), clamp(y - this.top, 0, this.plotHeight - 1));
    if (!at) return;
    const same = this.page.query === at.query && this.page.key === at.key;
    if (across < 0) this.page.choose({ query: at.query, key: null });
    else if (y < this.top) this.page.choose({ query: null, key: at.key });
    else this.page.choose(same ? { query: null, key: null } : at);
  }

  tellScale() {
    const meaning = this.near ? "weight of a key" : "weight on a cell";
    const told = `${meaning} ${this.brightest} ${this.page.theme.name} ${this.head.exactness}`;
    if (this.scale.dataset.told === told) return;
    this.scale.dataset.told = told;
    const ticks = ["0", brief(this.brightest / 4), brief(this.brightest)];
    this.scale.replaceChildren(legend(this.page.theme, meaning, ticks), make("span", { class: "muted note" }, this.head.exactness));
  }
}

/** Black or white, whichever reads better on a colour. */
const readable = ([red, green, blue]) => (0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#10151c" : "#ffffff");
