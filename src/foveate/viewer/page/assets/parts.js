// Parts of a text that has separators, such as the two sentences of a pair: only weights from one to another are shown.

const SEPARATORS = new Set(["[SEP]", "</s>", "<sep>", "<|sep|>", "<eos>"]);
const BEGINNINGS = new Set(["[CLS]", "<s>", "<cls>", "<bos>"]);

/** Where the texts between separators begin and end; none if there is only one. */
function textsOf(side) {
  if (!side.told || side.count > side.labels.length) return [];
  const found = [];
  let from = null;
  for (let place = 0; place <= side.count; place++) {
    const ends = place === side.count || SEPARATORS.has(side.labels[place]);
    if (!ends && from === null && !BEGINNINGS.has(side.labels[place])) from = place;
    if (ends && from !== null) found.push([from, place]);
    if (ends) from = null;
  }
  return found.length > 1 ? found.slice(0, 4) : [];
}

/** Chooses which text's queries and which text's keys are shown. */
class Parts {
  constructor(page) {
    this.page = page;
    this.chosen = "";
    this.list = make("select", { "aria-label": "From which text to which" });
    this.list.addEventListener("change", () => this.choose(this.list.value));
  }

  open(head) {
    const [over, along] = [textsOf(head.queries), textsOf(head.keys)];
    this.offered = new Map();
    over.forEach((queries, from) =>
      along.forEach((keys, to) => this.offered.set(`${"ABCD"[from]}${"ABCD"[to]}`, { queries, keys })),
    );
    if (!this.offered.has(this.chosen)) this.chosen = "";
    const options = [...this.offered.keys()].map((name) =>
      make("option", { value: name }, `text ${name[0]} looks at ${name[0] === name[1] ? "itself" : name[1]}`),
    );
    this.list.replaceChildren(make("option", { value: "" }, "all texts"), ...options);
    this.list.value = this.chosen;
    this.list.hidden = !this.offered.size;
    head.part = this.offered.get(this.chosen) ?? null;
  }

  choose(name) {
    this.chosen = this.offered.has(name) ? name : "";
    this.list.value = this.chosen;
    this.page.head.part = this.offered.get(this.chosen) ?? null;
    this.page.repaint();
  }
}

/** Whether a pair is in the part of the map that is shown. */
const inPart = (part, query, key) =>
  !part || (query >= part.queries[0] && query < part.queries[1] && key >= part.keys[0] && key < part.keys[1]);

/** Veil what is outside of the part that is shown. */
function paintVeil(map, context) {
  const { camera, head, page } = map;
  if (!head.part) return;
  const [top, bottom] = head.part.queries.map((place) => clamp(camera.y(place), 0, map.plotHeight));
  const [left, right] = head.part.keys.map((place) => clamp(camera.x(place), 0, map.plotWidth));
  context.fillStyle = page.theme.surface;
  context.globalAlpha = 0.85;
  context.fillRect(0, 0, map.plotWidth, top);
  context.fillRect(0, bottom, map.plotWidth, map.plotHeight - bottom);
  context.fillRect(0, top, left, bottom - top);
  context.fillRect(right, top, map.plotWidth - right, bottom - top);
  context.globalAlpha = 1;
}
