// The picture that the keys are: an image with the weights of the chosen query over its patches, or a spectrogram with
// them over its time. One steps through the queries; where they are patches as well, a click on one chooses it.

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
    this.foot = make("span", { class: "muted note" });
    const back = make("button", { type: "button", class: "icon", "aria-label": "Previous query" }, "‹");
    const on = make("button", { type: "button", class: "icon", "aria-label": "Next query" }, "›");
    const stepper = make("div", { class: "stepper" }, back, this.slider, on, this.told, this.style);
    this.stage = make("div", { class: "picture-stage" }, this.before, make("div", { class: "picture-main" }, this.frame, this.foot));
    this.element = make("div", { class: "pane-body picture" }, stepper, this.steps, this.stage);
    this.draw = drawnLater(() => this.paint());
    new ResizeObserver(() => this.draw()).observe(this.stage);
    this.image.addEventListener("load", () => this.draw());
    back.addEventListener("click", () => this.page.step(-1));
    on.addEventListener("click", () => this.page.step(1));
    this.slider.addEventListener("input", () => this.page.choose({ query: Number(this.slider.value), key: null }));
    this.style.addEventListener("click", () => {
      this.style.setAttribute("aria-pressed", String(this.style.getAttribute("aria-pressed") !== "true"));
      this.draw();
    });
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.page.hover(null));
    this.canvas.addEventListener("click", (event) => this.choose(event));
  }

  open(head) {
    this.head = head;
    const { picture } = head.keys;
    if (this.image.src !== picture.url) this.image.src = picture.url;
    this.frame.className = `picture-frame ${picture.kind}`;
    this.slider.max = head.queries.count - 1;
    this.style.hidden = picture.kind === "audio";
    this.steps.hidden = !head.queries.told;
    this.draw();
  }

  reveal() {
    this.draw();
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
    this.told.replaceChildren(make("b", { class: "query" }, make("bdi", {}, cut(name, 28))), ` ${this.query + 1} of ${count(head.queries.count)}`);
    this.canvas.setAttribute("aria-label", `Weights of query ${this.query}, ${name}, over the picture`);
    this.paintSteps();
    if (!row) return;
    const weights = new Float32Array(head.keys.count);
    row.keys.forEach((key, place) => {
      if (key >= 0) weights[key] = row.weights[place];
    });
    this.top = this.page.alike ? 1 : largest(weights.subarray(head.keys.before)) || 1;
    this.fit();
    const context = sharp(this.canvas, this.frame.clientWidth, this.frame.clientHeight);
    if (!context) return;
    if (head.keys.picture.kind === "image") this.paintPatches(context, weights);
    else this.paintMoments(context, weights);
    this.paintBefore(weights);
    this.paintFoot(row);
  }

  /** As large as there is room, as wide as it is high by its patches. */
  fit() {
    const { picture } = this.head.keys;
    const beside = this.before.offsetWidth;
    const room = this.stage.clientWidth - (beside && beside < this.stage.clientWidth ? beside + 16 : 0);
    const high = this.stage.clientHeight - 32;
    if (picture.kind === "audio") {
      this.frame.style.width = `${room}px`;
      this.frame.style.height = `${clamp(high, 200, 380)}px`;
      return;
    }
    const ratio = this.image.naturalWidth ? this.image.naturalWidth / this.image.naturalHeight : picture.width / picture.height;
    const width = Math.min(room, Math.max(180, high) * ratio, 900);
    this.frame.style.width = `${Math.floor(width)}px`;
    this.frame.style.height = `${Math.floor(width / ratio)}px`;
  }

  box(key) {
    const { keys } = this.head;
    const { width, height } = keys.picture;
    const [across, down] = [this.frame.clientWidth / width, this.frame.clientHeight / height];
    const place = key - keys.before;
    const [row, column] = [Math.floor(place / width), place % width];
    const [left, top] = [Math.round(column * across), Math.round(row * down)];
    return [left, top, Math.round((column + 1) * across) - left, Math.round((row + 1) * down) - top];
  }

  /** Over an image: what is not looked at lies in the dark, or each patch takes the colour of its weight. */
  paintPatches(context, weights) {
    const { head, page } = this;
    const coloured = this.style.getAttribute("aria-pressed") === "true";
    for (let key = head.keys.before; key < head.keys.count; key++) {
      const share = Math.min(1, Math.sqrt(weights[key] / this.top));
      context.globalAlpha = coloured ? 0.25 + 0.6 * share : 0.8 * (1 - share);
      context.fillStyle = coloured ? scales.dark.colour(weights[key], this.top) : "#06090d";
      context.fillRect(...this.box(key));
    }
    context.globalAlpha = 1;
    const frame = (key, colour) => {
      const [left, top, width, height] = this.box(key);
      context.lineWidth = 4;
      context.strokeStyle = "#06090d";
      context.strokeRect(left, top, width, height);
      context.lineWidth = 2;
      context.strokeStyle = colour;
      context.strokeRect(left, top, width, height);
    };
    const own = head.queries.picture?.kind === "image" && this.query >= head.queries.before;
    if (own && head.queries.count === head.keys.count) frame(this.query, "#8fd0ff");
    if (page.hovered && page.hovered.key >= head.keys.before) frame(page.hovered.key, "#ffc98a");
    if (page.key !== null && page.key >= head.keys.before) frame(page.key, "#ffb14e");
  }

  /** Over a spectrogram: what is not looked at lies in the dark; below, the weights as a curve. */
  paintMoments(context, weights) {
    const { keys } = this.head;
    const [width, height] = [this.frame.clientWidth, this.frame.clientHeight];
    const curve = Math.round(height * 0.32);
    const axis = 20;
    const moments = keys.count - keys.before;
    const bins = Math.min(moments, Math.floor(width / 2));
    const bounds = cells(moments, bins);
    const { theme } = this.page;
    context.fillStyle = theme.surface;
    context.fillRect(0, height - curve - axis, width, curve + axis);
    for (let bin = 0; bin < bins; bin++) {
      let most = 0;
      for (let moment = bounds[bin]; moment < bounds[bin + 1]; moment++) most = Math.max(most, weights[keys.before + moment]);
      const [left, right] = [Math.round((bin * width) / bins), Math.round(((bin + 1) * width) / bins)];
      context.globalAlpha = 0.72 * (1 - Math.min(1, Math.sqrt(most / this.top)));
      context.fillStyle = "#06090d";
      context.fillRect(left, 0, right - left, height - curve - axis);
      context.globalAlpha = 1;
      const high = (curve - 8) * Math.min(1, most / this.top);
      context.fillStyle = theme.query;
      context.fillRect(left, height - axis - high, Math.max(1, right - left - (right - left > 3)), high);
    }
    this.paintTime(context, width, height, axis, theme);
    if (this.page.hovered) {
      const x = ((this.page.hovered.key - keys.before + 0.5) * width) / moments;
      context.fillStyle = theme.key;
      context.fillRect(Math.round(x), 0, 1, height - axis);
    }
  }

  paintTime(context, width, height, axis, theme) {
    const { seconds } = this.head.keys.picture;
    const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120].find((each) => (each / seconds) * width >= 56) ?? 300;
    context.font = FONT;
    context.fillStyle = theme.muted;
    context.textBaseline = "alphabetic";
    for (let mark = 0; mark * step <= seconds; mark++) {
      const x = ((mark * step) / seconds) * width;
      const name = `${Number((mark * step).toFixed(1))} s`;
      const half = context.measureText(name).width / 2;
      context.textAlign = "center";
      context.fillText(name, clamp(x, half + 6, width - half - 6), height - 5);
      context.fillRect(Math.min(x, width - 1), height - axis, 1, 4);
    }
  }

  /** The tokens before the picture, with their weights. */
  paintBefore(weights) {
    const { keys } = this.head;
    const tokens = Array.from({ length: keys.before }, (_, key) => {
      const token = make("div", { class: "token looked", role: "listitem" }, make("bdi", { class: "text" }, cut(keys.label(key), 16)), make("span", { class: "place" }, figures(weights[key])));
      token.style.setProperty("--share", `${Math.round(8 + 92 * Math.sqrt(weights[key]))}%`);
      return token;
    });
    this.before.replaceChildren(...tokens);
    this.before.hidden = !tokens.length;
  }

  /** The texts of the queries, to step to by a click. */
  paintSteps() {
    const { head } = this;
    if (!head.queries.told) return;
    const [from, to] = [Math.max(0, this.query - 60), Math.min(head.queries.count, this.query + 60)];
    const steps = [];
    for (let query = from; query < to; query++) {
      const step = make("button", { type: "button", class: "piece", "aria-pressed": String(query === this.query) }, make("bdi", {}, cut(head.queries.label(query), 24)));
      step.addEventListener("click", () => this.page.choose({ query, key: null }));
      steps.push(step);
    }
    refill(this.steps, ...steps);
  }

  paintFoot(row) {
    const { head, page } = this;
    const scale = page.alike ? "1" : brief(this.top);
    const rest = head.exact ? "" : ` All keys but the top ${head.kept}, not drawn: ${figures(row.rest)}.`;
    const what = head.keys.picture.kind === "image" ? "Brightest patch" : "Tallest bar";
    this.foot.textContent = `${what}: ${scale}.${rest}`;
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const { keys } = this.head;
    const { picture } = keys;
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    if (picture.kind === "audio") return clamp(keys.before + Math.floor(x * (keys.count - keys.before)), keys.before, keys.count - 1);
    const [row, column] = [clamp(Math.floor(y * picture.height), 0, picture.height - 1), clamp(Math.floor(x * picture.width), 0, picture.width - 1)];
    return keys.before + row * picture.width + column;
  }

  hover(event) {
    const key = this.at(event);
    const box = this.canvas.getBoundingClientRect();
    this.page.hover({ query: this.query, key });
    this.page.tip(pairTold(this.head, this.query, key), this.canvas, event.clientX - box.left, event.clientY - box.top);
  }

  choose(event) {
    const key = this.at(event);
    const own = this.head.queries.picture?.kind === "image" && this.head.queries.count === this.head.keys.count;
    if (own) this.page.choose({ query: key, key: null });
    else this.page.choose({ query: this.query, key: this.page.key === key ? null : key });
    this.hover(event);
  }
}
