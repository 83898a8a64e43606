// What the answer needs: the places of the input and a grid of layers and heads, coloured by what is lost without them.

const NEEDED = { light: ["#b2182b", "#f7f9fb", "#2166ac"], dark: ["#ff7a6b", "#1c2530", "#6bb8ff"] };

/** A diverging colour: the first where the answer loses, the last where it gains, the middle at 0. */
function effectColour(change, most, theme) {
  const share = clamp(Math.abs(change) / (most || 1), 0, 1);
  const [loss, none, gain] = NEEDED[theme.name].map((stop) => [1, 3, 5].map((from) => parseInt(stop.slice(from, from + 2), 16)));
  const end = change < 0 ? loss : gain;
  const mixed = none.map((low, channel) => Math.round(low + (end[channel] - low) * share));
  const [red, green, blue] = mixed;
  return { background: `rgb(${mixed.join(",")})`, dark: 0.299 * red + 0.587 * green + 0.114 * blue < 140 };
}

const signed = (change) => `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(3)}`;

const sized = (change) => change.toPrecision(3);

const toldEffect = (change, exact) => `${signed(change)}${exact ? "" : ", estimated"}`;

/** The part of the overview with the effects of a page; null for a page without. */
class EffectTable {
  constructor(page, effects) {
    Object.assign(this, { page, effects });
    this.cells = [];
    this.scale = make("div", {});
    const { answer, score, value } = effects;
    const told = `Its ${score} is ${value.toFixed(3)}. Without what is red it falls, without what is blue it rises.`;
    const line = make("div", { class: "intro-line" }, make("p", { class: "muted" }, told), this.scale);
    this.element = make(
      "section",
      { class: "effects", "aria-label": "What the answer needs" },
      make("h2", {}, "What the answer needs: ", make("bdi", { class: "effects-answer" }, visible(answer))),
      line,
      make("div", { class: "effect-parts" }, ...this.parts()),
    );
    this.paint();
  }

  /** Places and heads, beside each other where there is room. */
  parts() {
    const places = this.places();
    const found = places.length ? [places, [this.heads()]] : [[this.heads()]];
    return found.map((part) => make("div", { class: "effect-part" }, ...part));
  }

  cell(change, exact, most, name, content, open) {
    const label = `${name}: ${toldEffect(change, exact)}`;
    const kind = exact ? "effect" : "effect estimated";
    const cell = open
      ? make("button", { type: "button", class: kind, title: label, "aria-label": label }, content)
      : make("span", { class: kind, title: label }, content);
    if (open) cell.addEventListener("click", open);
    this.cells.push({ cell, change, most });
    return cell;
  }

  /** The places of the input, all on one scale: words, grids of an image's patches, the times of a sound. */
  places() {
    const { places } = this.effects;
    const most = largest(places.flatMap(({ effects }) => effects.changes.map(Math.abs)));
    const title = make("h3", {}, "Without a place of the input ", make("small", { class: "muted" }, `up to ${sized(most)}`));
    return places.length ? [title, ...places.flatMap((part) => this.placesTogether(part, most))] : [];
  }

  /** A part of the input: its words, or its image or sound, with what stands before it. */
  placesTogether({ site, places, effects }, most) {
    const { sites, sides } = this.page.overview;
    const side = new Side(sides[sites.find((each) => each.name === site).keys]);
    const inPicture = (place) => side.picture && place >= side.before;
    const cells = places.map((place, number) => {
      const label = side.label(place);
      return this.cell(effects.changes[number], effects.exact[number], most, label, inPicture(place) ? "" : cut(label, 40));
    });
    const words = cells.filter((_, number) => !inPicture(places[number]));
    const inside = cells.filter((_, number) => inPicture(places[number]));
    const found = words.length ? [make("p", { class: "effect-words", dir: "auto" }, ...words)] : [];
    if (!inside.length) return found;
    const grid = make("div", { class: `effect-grid ${side.picture.kind}` }, ...inside);
    grid.style.setProperty("--columns", side.picture.kind === "image" ? side.picture.width : inside.length);
    const image = make("img", { src: side.picture.url, alt: "" });
    return [...found, make("div", { class: "effect-picture" }, image, grid)];
  }

  heads() {
    const { effects, page } = this;
    const numbers = new Map(page.overview.sites.map((site, place) => [site.name.split("#")[0], place]));
    const most = largest(effects.heads.flatMap(({ changes }) => changes.map(Math.abs)));
    const whole = largest(effects.layers.changes.map(Math.abs));
    const widest = largest(effects.heads.map(({ changes }) => changes.length));
    const head = make("div", { class: "effect-row", "aria-hidden": "true" }, make("span", { class: "effect-site" }, "head"));
    for (let number = 0; number < widest; number++) head.append(make("span", { class: "effect-number" }, String(number)));
    head.append(make("span", { class: "effect-number effect-all" }, "all"));
    const rows = effects.sites.map((name, row) => {
      const { changes, exact } = effects.heads[row];
      const place = numbers.get(name);
      const cells = changes.map((change, number) =>
        this.cell(change, exact[number], most, `${name}, head ${number}`, "", () => page.open(place, number)),
      );
      const blanks = Array.from({ length: widest - changes.length }, () => make("span", { class: "effect-none" }));
      const all = this.cell(effects.layers.changes[row], effects.layers.exact[row], whole, `${name}, all heads`, "", () => page.open(place, changes.length));
      all.classList.add("effect-all");
      return make("div", { class: "effect-row" }, make("span", { class: "effect-site", title: name }, make("bdi", {}, name)), ...cells, ...blanks, all);
    });
    const told = `up to ${sized(most)} for a head, ${sized(whole)} for all heads of a layer`;
    return make("div", {}, make("h3", {}, "Without a head ", make("small", { class: "muted" }, told)), make("div", { class: "effect-heads" }, head, ...rows));
  }

  /** Colour all cells, as the theme wants it. */
  paint() {
    const { theme } = this.page;
    for (const { cell, change, most } of this.cells) {
      const { background, dark } = effectColour(change, most, theme);
      cell.style.setProperty("--effect", background);
      cell.style.color = dark ? "#ffffff" : "#17202b";
    }
    const colours = [-1, 0, 1].map((change) => effectColour(change, 1, theme).background);
    const bar = make("span", { class: "effect-scale" });
    bar.style.background = `linear-gradient(90deg, ${colours.join(",")})`;
    const told = "the answer needs it at the left, is better without it at the right; dots are estimates";
    this.scale.replaceChildren(make("div", { class: "legend", role: "img", "aria-label": told }, "needed", bar, "in the way · estimated"));
  }
}
