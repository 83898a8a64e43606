// Points of feature maps over the picture: where a query of deformable attention looks. A map has a shape and a colour;
// a point is the larger and the darker the more it weighs. A source gives the points of some queries of a head:
//
//   points(site, head, from, to)       { across, down, weights }, of (to - from) x count: shares of the picture, from the
//                                      left and from the top; the points of a map follow each other, map by map.

const MARKS = [
  ["●", (context, x, y, size) => context.arc(x, y, size, 0, 2 * Math.PI)],
  ["■", (context, x, y, size) => context.rect(x - 0.9 * size, y - 0.9 * size, 1.8 * size, 1.8 * size)],
  ["▲", (context, x, y, size) => polygon(context, x, y, 1.3 * size, 3)],
  ["◆", (context, x, y, size) => polygon(context, x, y, 1.3 * size, 4)],
  ["⬟", (context, x, y, size) => polygon(context, x, y, 1.2 * size, 5)],
  ["⬢", (context, x, y, size) => polygon(context, x, y, 1.1 * size, 6)],
];

function polygon(context, x, y, size, corners) {
  for (let corner = 0; corner < corners; corner++) {
    const angle = (2 * Math.PI * corner) / corners - Math.PI / 2;
    context.lineTo(x + size * Math.cos(angle), y + size * Math.sin(angle));
  }
  context.closePath();
}

/** Draws the points of the chosen query, and tells what their marks mean. */
class PointMarks {
  constructor(view) {
    this.view = view;
    this.found = new Map();
    this.button = make("button", { type: "button", class: "small", "aria-pressed": "true" }, "Points");
    this.button.title = "The points that the query reads; without them, their sum over the picture";
    this.button.addEventListener("click", () => {
      this.button.setAttribute("aria-pressed", String(!this.on));
      view.draw();
    });
    this.legend = make("p", { class: "point-legend note", hidden: true });
  }

  open(head) {
    if (this.head === head) return;
    this.head = head;
    this.found.clear();
    this.button.hidden = !head.info.points;
  }

  get on() {
    return Boolean(this.head?.info.points) && this.button.getAttribute("aria-pressed") === "true";
  }

  /** The points of a query; undefined until they are here. */
  of(query) {
    if (!this.found.has(query)) {
      this.found.set(query, undefined);
      this.view.page.attempt(() => this.fetch(this.head, query));
    }
    return this.found.get(query);
  }

  async fetch(head, query) {
    try {
      const points = await head.source.points(head.site, head.head, query, query + 1);
      if (head !== this.head) return;
      this.found.set(query, points);
      this.view.draw();
    } catch (error) {
      this.found.delete(query);
      throw error;
    }
  }

  paint(context, width, height) {
    this.legend.hidden = !this.on;
    const points = this.on ? this.of(this.view.query) : undefined;
    if (!points) return;
    const { across, down, weights } = points;
    const { grids } = this.head.info;
    const top = this.view.page.alike ? this.view.page.most : largest(weights) || 1;
    const order = Array.from(weights.keys()).sort((one, other) => weights[one] - weights[other]);
    const each = this.head.info.points / grids.length;
    const unit = clamp(Math.min(width, height) / 40, 5, 13);
    let outside = 0;
    for (const point of order) {
      const [x, y] = [across[point], down[point]];
      if (weights[point] === 0) continue;
      if (x < 0 || x > 1 || y < 0 || y > 1) {
        outside += weights[point];
        continue;
      }
      const map = Math.floor((point % this.head.info.points) / each);
      const share = Math.sqrt(Math.min(1, weights[point] / top));
      this.mark(context, map, x * width, y * height, unit * (0.3 + 0.7 * share), 0.25 + 0.75 * share);
    }
    this.tell(outside);
  }

  mark(context, map, x, y, size, alpha) {
    context.globalAlpha = alpha;
    context.beginPath();
    MARKS[map % MARKS.length][1](context, x, y, size);
    context.fillStyle = INKS.dark[map % INKS.dark.length];
    context.fill();
    context.lineWidth = 1.5;
    context.strokeStyle = DARK;
    context.stroke();
    context.globalAlpha = 1;
  }

  tell(outside) {
    const maps = this.head.info.grids.flatMap(([rows, columns], map) => {
      const mark = make("span", { class: "point-mark", "aria-hidden": "true" }, MARKS[map % MARKS.length][0]);
      mark.style.color = INKS[this.view.page.theme.name][map % INKS.dark.length];
      return [make("span", {}, mark, `map ${map + 1} (${rows} × ${columns})`)];
    });
    const rest = outside > 0.0005 ? ` Outside of the picture, where nothing is read: ${figures(outside)}.` : "";
    const each = this.head.mean ? " of each head" : "";
    const told = `${counted(this.head.info.points, "point")}${each}; the larger, the more weight.${rest}`;
    this.legend.replaceChildren(...maps, make("span", { class: "muted" }, told));
  }
}
