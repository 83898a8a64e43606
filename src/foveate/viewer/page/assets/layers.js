// Several heads of a site over each other: each has a colour, and where they agree the colours mix.

const INKS = {
  light: ["#0077bb", "#ee7733", "#009e73", "#cc3377", "#8855cc", "#998800"],
  dark: ["#56b4e9", "#f5a25d", "#3ddba6", "#ff7eb6", "#b9a0ff", "#e8dc50"],
};

/** The colours of a head among others: one hue, and transparent where there is no weight. */
class Ink extends Scale {
  constructor(hex) {
    super([hex, hex]);
    this.css = this.bytes.map((colour, step) => `rgb(${colour.join(" ")} / ${(step / (STEPS - 1)).toFixed(3)})`);
    this.hex = hex;
  }
}

/** The heads that are drawn over each other: the open one and those that are chosen beside it. */
class Layers {
  constructor(page) {
    Object.assign(this, { page, on: false, others: new Map() });
    this.button = make("button", { type: "button", class: "small", "aria-pressed": "false" }, "Overlay");
    this.button.title = "Draw several heads over each other, each in a colour: choose them above";
    this.button.addEventListener("click", () => this.switch(!this.on));
  }

  switch(on) {
    this.on = on;
    this.button.setAttribute("aria-pressed", String(on));
    this.others.clear();
    this.page.repaint();
  }

  /** Another head is open: heads of the same site stay. */
  open(head, maps) {
    const same = this.maps === maps;
    this.maps = maps;
    this.button.hidden = countMaps(head.info) < 2;
    if (!same || this.button.hidden) this.others.clear();
    this.others.delete(head.head);
  }

  /** Add a head, or take it away; the open one stays. */
  toggle(number) {
    const { page } = this;
    if (number === page.head.head) return;
    if (this.others.delete(number)) return page.repaint();
    if (this.others.size >= INKS.light.length - 1) return page.say(`At most ${INKS.light.length} heads.`);
    const head = new Head(page.source, page.overview, page.head.site, number, this.maps);
    head.arrived = () => page.stage.update();
    this.others.set(number, head);
    return page.repaint();
  }

  /** The heads that are drawn, each with its ink, the open one first; none unless there are several. */
  get drawn() {
    if (!this.on || !this.others.size) return [];
    const inks = INKS[this.page.theme.name].map((hex) => new Ink(hex));
    return [this.page.head, ...this.others.values()].map((head, place) => ({ head, ink: inks[place] }));
  }

  /** Show the colour of each head on its small map. */
  mark(thumbs) {
    const inks = new Map(this.drawn.map(({ head, ink }) => [head.head, ink.hex]));
    thumbs.forEach((thumb, place) => {
      thumb.classList.toggle("inked", inks.has(place));
      if (inks.has(place)) thumb.style.setProperty("--ink", inks.get(place));
    });
  }
}

/** Draw the heads over each other in the plot of a map. */
function paintLayers(map, context, drawn) {
  const { page, near, camera } = map;
  context.fillStyle = page.theme.scale.css[0];
  context.fillRect(0, 0, map.plotWidth, map.plotHeight);
  context.globalCompositeOperation = page.theme.name === "dark" ? "screen" : "multiply";
  for (const { head, ink } of drawn) {
    if (near) page.attempt(() => head.want(...camera.seen.rows));
    const layer = Object.assign(Object.create(map), { head, colour: ink, layered: true });
    paintGround(layer, context);
    if (near) paintRows(layer, context);
  }
  context.globalCompositeOperation = "source-over";
}

/** The legend of the heads: each colour, and the largest weight that it stands for. */
function layersLegend(map, drawn) {
  const parts = drawn.map(({ head, ink }) => {
    const square = make("span", { class: "ink", "aria-hidden": "true" });
    square.style.background = ink.hex;
    const { brightest } = Object.assign(Object.create(map), { head });
    return make("span", { class: "inked-name" }, square, `${head.name} to ${brief(brightest)}`);
  });
  return make("div", { class: "legend layered" }, ...parts);
}
