// Colours of weights. Each scale begins with the page's background and has even steps of lightness, so that it is
// readable with colour blindness and in grey print. A weight has the colour at the square root of its ratio to the
// brightest weight, which makes small weights visible; the legend shows it.

const SCALES = {
  light: ["#f5fafc", "#c5e2ee", "#97cbe5", "#68b2dc", "#3796cf", "#1177b6", "#115896", "#203c6e", "#1c2348"],
  dark: ["#181e29", "#213550", "#2a4f74", "#216d95", "#2b8daa", "#3daeb5", "#70ccba", "#b4e5b2", "#f9f9b2"],
};

const STEPS = 256;

/** A scale of 256 colours, as bytes and as CSS. */
class Scale {
  constructor(stops) {
    const channels = stops.map((stop) => [1, 3, 5].map((start) => parseInt(stop.slice(start, start + 2), 16)));
    this.bytes = Array.from({ length: STEPS }, (_, step) => {
      const place = (step / (STEPS - 1)) * (stops.length - 1);
      const from = Math.min(Math.floor(place), stops.length - 2);
      return channels[from].map((low, channel) => {
        return Math.round(low + (channels[from + 1][channel] - low) * (place - from));
      });
    });
    this.css = this.bytes.map((colour) => `rgb(${colour.join(",")})`);
  }

  /** The colour of no weight. */
  get none() {
    return this.css[0];
  }

  /** The step of a weight; `top` has the last step. */
  step(weight, top) {
    if (!(weight > 0)) return 0;
    return Math.min(STEPS - 1, Math.round((STEPS - 1) * Math.sqrt(weight / top)));
  }

  colour(weight, top) {
    return this.css[this.step(weight, top)];
  }
}

const scales = { light: new Scale(SCALES.light), dark: new Scale(SCALES.dark) };

/** Light or dark theme: the system's, until the user changes it; and the page's colours for drawing. */
class Theme {
  constructor(changed) {
    this.system = matchMedia("(prefers-color-scheme: dark)");
    this.chosen = remembered.get("theme");
    this.changed = changed;
    this.system.addEventListener("change", () => this.apply());
    this.apply();
  }

  get name() {
    if (this.chosen) return this.chosen === "dark" ? "dark" : "light";
    return this.system.matches ? "dark" : "light";
  }

  switch() {
    this.chosen = this.name === "dark" ? "light" : "dark";
    remembered.set("theme", this.chosen);
    this.apply();
  }

  apply() {
    document.documentElement.dataset.theme = this.name;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    this.scale = (this.signed ? diverging : scales)[this.name];
    for (const name of ["text", "muted", "line", "surface", "query", "key", "found"]) this[name] = colour(name);
    this.changed();
  }
}

/** Draw a small map, with one pixel for each cell. */
function paintMap(canvas, values, rows, columns, top, scale) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let cell = 0; cell < rows * columns; cell++) {
    const [red, green, blue] = scale.bytes[scale.step(values[cell], top)];
    image.data[4 * cell] = red;
    image.data[4 * cell + 1] = green;
    image.data[4 * cell + 2] = blue;
    image.data[4 * cell + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/** The largest size of numbers. */
const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** What the legend of a scale says of its ends and its middle. */
const ticksOf = (top) => (numbers.signed ? [`−${brief(top)}`, "0", `+${brief(top)}`] : ["0", brief(top / 4), brief(top)]);

/** The legend of a scale: its colours, with the values of the first, middle and last one. */
function legend(theme, meaning, ticks) {
  const bar = make("canvas", { class: "legend-bar", "aria-hidden": "true" });
  bar.width = STEPS;
  bar.height = 1;
  const context = bar.getContext("2d");
  theme.scale.css.forEach((colour, step) => {
    context.fillStyle = colour;
    context.fillRect(step, 0, 1, 1);
  });
  const ends = make("span", { class: "legend-ticks", "aria-hidden": "true" });
  ends.append(...ticks.map((tick) => make("span", {}, tick)));
  const told = `${meaning}: the first colour is ${ticks[0]}, the last ${ticks[2]}`;
  return make(
    "div",
    { class: "legend", role: "img", "aria-label": told },
    make("span", {}, meaning),
    make("span", {}, bar, ends),
  );
}

const brief = (weight) => (weight === 1 ? "1" : String(Number(weight.toPrecision(2))));
