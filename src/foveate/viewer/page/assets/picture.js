// The picture of the keys: an image with the weights of the chosen query over its patches, or a spectrogram with the
// weights over its time. The user steps through the queries, or clicks on one if they are patches, too.

class Picture {
  constructor(page) {
    this.page = page;
    this.image = make("img", { class: "picture-image", alt: "" });
    this.canvas = make("canvas", { class: "picture-weights", tabIndex: 0, role: "img" });
    this.frame = make("div", { class: "picture-frame" }, this.image, this.canvas);
    this.before = make("div", { class: "picture-before", role: "list", "aria-label": "Tokens before the picture" });
    this.slider = make("input", { type: "range", min: 0, value: 0, "aria-label": "Query" });
    this.told = make("output", { class: "picture-query" });
    this.steps = make("div", { class: "picture-steps" });
    this.style = make("button", { type: "button", class: "small", "aria-pressed": "false" }, "Colours");
    this.fovea = make("button", { type: "button", class: "small", "aria-pressed": "false" }, "Fovea");
    this.fovea.title = "Sharp where the weights are large, blurred elsewhere";
    this.foot = make("span", { class: "muted note" });
    this.points = new PointMarks(this);
    const back = make("button", { type: "button", class: "icon", "aria-label": "Previous query" }, "‹");
    const on = make("button", { type: "button", class: "icon", "aria-label": "Next query" }, "›");
    const stepper = make("div", { class: "stepper" }, back, this.slider, on, this.told, this.points.button, this.style, this.fovea);
    this.stage = make(
      "div",
      { class: "picture-stage" },
      this.before,
      make("div", { class: "picture-main" }, this.frame, this.points.legend, this.foot),
    );
    this.element = make("div", { class: "pane-body picture" }, stepper, this.steps, this.stage);
    this.narrow = matchMedia("(max-width: 699px)");
    this.draw = drawnLater(() => this.paint());
    new ResizeObserver(() => this.draw()).observe(this.stage);
    this.image.addEventListener("load", () => this.draw());
    back.addEventListener("click", () => this.page.step(-1));
    on.addEventListener("click", () => this.page.step(1));
    this.slider.addEventListener("input", () => this.page.choose({ query: Number(this.slider.value), key: null }));
    this.style.addEventListener("click", () => {
      this.style.setAttribute("aria-pressed", String(!this.coloured));
      this.draw();
    });
    this.fovea.addEventListener("click", () => {
      this.fovea.setAttribute("aria-pressed", String(!this.foveated));
      this.draw();
    });
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.page.hover(null));
    this.canvas.addEventListener("click", (event) => this.choose(event));
  }

  open(head) {
    this.head = head;
    const { picture } = head.keys;
    this.overlay = picture.kind === "image" ? new Patches(this) : new Moments(this);
    if (this.image.src !== picture.url) this.image.src = picture.url;
    this.frame.className = `picture-frame ${picture.kind}`;
    this.points.open(head);
    this.slider.max = head.queries.count - 1;
    this.style.hidden = picture.kind === "audio";
    this.steps.hidden = !head.queries.told;
    this.draw();
  }

  reveal() {
    this.draw();
  }

  /** Whether the queries are patches or times of the same picture. */
  get alike() {
    const { queries, keys } = this.head;
    return queries.picture?.place === keys.picture.place && queries.count === keys.count;
  }

  get coloured() {
    return this.style.getAttribute("aria-pressed") === "true";
  }

  get foveated() {
    return this.fovea.getAttribute("aria-pressed") === "true" && this.head.keys.picture.kind === "image";
  }

  get query() {
    return this.page.query ?? 0;
  }

  paint() {
    const { head } = this;
    if (!head || !this.stage.clientWidth) return;
    this.page.attempt(() => head.want(this.query, this.query + 1));
    const row = head.row(this.query);
    const name = head.queries.label(this.query);
    this.slider.value = this.query;
    this.slider.setAttribute("aria-valuetext", name);
    this.told.replaceChildren(
      make("b", { class: "query" }, make("bdi", {}, cut(name, 28))),
      ` ${this.query + 1} of ${count(head.queries.count)}`,
    );
    this.fovea.hidden = head.keys.picture.kind !== "image";
    this.image.style.filter = this.foveated ? "blur(5px) brightness(0.4)" : "";
    this.canvas.setAttribute("aria-label", `Weights of query ${this.query}, ${name}, over the picture`);
    this.paintSteps();
    this.before.hidden = !head.keys.before;
    if (row) this.paintRow(row);
    else this.wait();
  }

  paintRow(row) {
    const weights = this.head.estimate(this.query);
    this.top = this.page.alike ? this.page.most : largest(weights.subarray(this.head.keys.before)) || 1;
    this.paintBefore(weights);
    const context = this.fit();
    const size = [this.frame.clientWidth, this.frame.clientHeight];
    this.overlay.paint(context, ...size, weights);
    this.points.paint(context, ...size);
    this.paintFoot(row);
  }

  /** Show only the picture: it would have the weights of another query. */
  wait() {
    this.before.replaceChildren();
    this.fit();
    this.foot.textContent = COMING;
  }

  /** Fit the picture beside the tokens before it. */
  fit() {
    const beside = this.before.offsetWidth;
    const room = this.stage.clientWidth - (beside && beside < this.stage.clientWidth ? beside + 16 : 0);
    // On a narrow screen the stage fits the picture.
    const below = 32 + (this.head.info.points ? 44 : 0);
    const high = this.narrow.matches ? 0.8 * innerHeight : this.stage.clientHeight - below;
    const [width, height] = this.overlay.size(room, high);
    this.frame.style.width = `${width}px`;
    this.frame.style.height = `${height}px`;
    return sharp(this.canvas, width, height);
  }

  /** The tokens before the picture, with their weights. */
  paintBefore(weights) {
    const { keys } = this.head;
    const tokens = Array.from({ length: keys.before }, (_, key) => {
      const token = make(
        "div",
        { class: "token looked", role: "listitem" },
        make("bdi", { class: "text" }, cut(keys.label(key), 16)),
        make("span", { class: "place" }, this.figures(key)),
      );
      token.style.setProperty("--share", `${Math.round(8 + 92 * Math.sqrt(weights[key]))}%`);
      return token;
    });
    this.before.replaceChildren(...tokens);
  }

  figures(key) {
    const { weight, below } = this.head.weight(this.query, key);
    return below === undefined ? figures(weight) : `≤ ${figures(below)}`;
  }

  /** The names of the queries, which can be clicked. */
  paintSteps() {
    const { head } = this;
    if (!head.queries.told) return;
    const [from, to] = [Math.max(0, this.query - 60), Math.min(head.queries.count, this.query + 60)];
    const steps = [];
    for (let query = from; query < to; query++) {
      const step = make(
        "button",
        { type: "button", class: "piece", "aria-pressed": String(query === this.query) },
        make("bdi", {}, cut(head.queries.label(query), 24)),
      );
      step.addEventListener("click", () => this.page.choose({ query, key: null }));
      steps.push(step);
    }
    refill(this.steps, ...steps);
  }

  paintFoot(row) {
    const { head, page } = this;
    const scale = brief(this.top);
    const framed = head.reach && head.keys.picture.kind === "image" ? " The frame is the query's window." : "";
    const shared = head.reach ? "shared evenly" : "as pooled";
    const rest = head.complete
      ? ""
      : ` Exact for the top ${head.kept} keys; the others, ${figures(row.rest)} together, ${shared}.`;
    this.foot.textContent = `${this.overlay.brightest}: ${scale}.${framed}${rest}`;
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.overlay.at((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  }

  hover(event) {
    const key = this.at(event);
    const box = this.canvas.getBoundingClientRect();
    this.page.hover({ query: this.query, key });
    tip(pairTold(this.head, this.query, key), this.canvas, event.clientX - box.left, event.clientY - box.top);
  }

  choose(event) {
    const key = this.at(event);
    if (this.alike) this.page.choose({ query: key, key: null });
    else this.page.choose({ query: this.query, key: this.page.key === key ? null : key });
    this.hover(event);
  }
}
