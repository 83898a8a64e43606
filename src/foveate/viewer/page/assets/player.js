// Plays the queries of an open head in turn: a text as it was written, each token with where it looked.

const PACES = [
  ["slow", 1600],
  ["steady", 800],
  ["fast", 250],
]; // milliseconds that each query is shown

class Player {
  constructor(page) {
    this.page = page;
    this.timer = null;
    this.button = make("button", { type: "button", class: "small", "aria-pressed": "false" }, "Play");
    this.button.title = "Go through the queries in turn (space)";
    this.button.addEventListener("click", () => this.run(!this.playing));
    this.pace = make(
      "select",
      { "aria-label": "Speed" },
      ...PACES.map(([name, pace]) => make("option", { value: pace, selected: name === "steady" }, name)),
    );
    this.pace.addEventListener("change", () => this.playing && this.wait());
    this.told = make("output", { class: "muted played" });
    this.element = make("div", { class: "player", role: "group", "aria-label": "Play" }, this.button, this.pace, this.told);
  }

  get playing() {
    return this.timer !== null;
  }

  /** Play from the chosen query, or from the first one if none or the last is chosen; or stop. */
  run(on) {
    clearTimeout(this.timer);
    this.timer = null;
    this.button.textContent = on ? "Pause" : "Play";
    this.button.setAttribute("aria-pressed", String(on));
    this.told.textContent = "";
    const { page } = this;
    if (on) {
      this.wait();
      const last = page.head.queries.count - 1;
      this.show(page.query === null || page.query === last ? 0 : page.query);
    } else if (page.head) page.stage.update(false);
  }

  wait() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.advance(), Number(this.pace.value));
  }

  /** Show the next query; one whose weights are still on their way stays. */
  advance() {
    const { page } = this;
    const { head, query } = page;
    if (!head || page.stage.player !== this || query === head.queries.count - 1) return this.run(false);
    this.wait();
    if (query === null || head.row(query)) this.show((query ?? -1) + 1);
    return undefined;
  }

  show(query) {
    this.told.textContent = `${count(query + 1)} of ${count(this.page.head.queries.count)}`;
    this.page.choose({ query, key: null }, true);
  }
}

/** Veil the rows after the one that is shown while they are played. */
function paintComing(map, context) {
  const { camera, page } = map;
  if (!page.stage.player.playing || page.query === null) return;
  const top = clamp(camera.y(page.query + 1), 0, map.plotHeight);
  context.fillStyle = page.theme.surface;
  context.globalAlpha = 0.85;
  context.fillRect(0, top, map.plotWidth, map.plotHeight - top);
  context.globalAlpha = 1;
}
