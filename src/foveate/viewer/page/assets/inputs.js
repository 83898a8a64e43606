// The inputs of the model in the overview: texts as pieces, pictures as thumbnails.

const EXCERPT = 600;

/** The inputs of the model: each text and picture once, a text with the names of its maps; null if there are none. */
function inputsOf({ sites, sides }) {
  const shown = [];
  const pictures = new Set();
  const several = sides.filter((head) => new Side(head).told).length > 1;
  const titles = new Map();
  sides.forEach((head, place) => {
    const side = new Side(head);
    if (side.picture) {
      if (!pictures.has(side.picture.url)) shown.push(thumbnail(side));
      pictures.add(side.picture.url);
    } else if (side.told) {
      const users = sites.filter((site) => site.queries === place || site.keys === place);
      const title = several ? roleOf(sites, place) : "Tokens";
      titles.set(title, (titles.get(title) ?? 0) + 1);
      const numbered = titles.get(title) > 1 ? `${title} ${titles.get(title)}` : title;
      shown.push(excerpt(side, place, numbered, [...new Set(users.map((site) => site.group))]));
    }
  });
  return shown.length ? make("div", { class: "inputs" }, ...shown) : null;
}

/** What a text is to the model: what it reads, what it writes, or what it has written so far. */
function roleOf(sites, place) {
  const crossing = sites.filter((site) => site.queries !== site.keys);
  if (!crossing.length) return "Text";
  if (crossing.some((site) => site.keys === place)) return "Source";
  return crossing.some((site) => site.queries === place) ? "Target" : "Target, as it is read";
}

function excerpt(side, number, title, groups) {
  const shown = side.labels
    .slice(0, EXCERPT)
    .map((_, place) => {
      const told = { class: "piece", "data-side": number, "data-place": place };
      return make("bdi", told, cut(side.label(place), 40));
    });
  if (side.count > EXCERPT) shown.push(make("span", { class: "muted" }, `… and ${count(side.count - EXCERPT)} more`));
  return make(
    "div",
    { class: "input" },
    make("h3", {}, `${title} `, make("small", {}, `${counted(side.count, "token")} · ${groups.join(", ")}`)),
    make("p", { class: "pieces" }, ...shown),
  );
}

function thumbnail(side) {
  const { picture } = side;
  const image = picture.kind === "image";
  const name = image ? "Image" : "Sound";
  const told = image ? `${picture.height} × ${picture.width} patches` : `${picture.seconds.toFixed(1)} s`;
  return make(
    "div",
    { class: `input ${picture.kind}` },
    make("h3", {}, `${name} `, make("small", {}, told)),
    make("img", { src: picture.url, alt: image ? "What the model saw" : "Spectrogram of what the model heard" }),
  );
}

/** Light the row of a query and the column of a key on a small map; null for none. */
function lightPair(thumb, query, key, queries, keys) {
  for (const [name, place, total, start, size] of [
    ["row", query, queries, "top", "height"],
    ["column", key, keys, "left", "width"],
  ]) {
    let line = thumb.querySelector(`.lit-${name}`);
    if (!line && place === null) continue;
    if (!line) thumb.append((line = make("span", { class: `lit lit-${name}` })));
    line.hidden = place === null;
    line.style[start] = `${(100 * place) / total}%`;
    line.style[size] = `${100 / total}%`;
  }
}

/** Mark the tokens that the search has found, by the numbers of their texts. */
function markFound(table, matches) {
  for (const piece of table.element.querySelectorAll(".piece")) {
    const places = matches.get(Number(piece.dataset.side));
    piece.classList.toggle("found", Boolean(places?.has(Number(piece.dataset.place))));
    piece.removeAttribute("aria-current");
  }
  table.reached = null;
  table.light(null);
}

/** Show where a token is: in its text, as far as the overview has it, and in every head. */
function revealFound(table, side, place) {
  table.reached = { side, place };
  table.light(null);
  for (const piece of table.element.querySelectorAll(".piece[aria-current]")) piece.removeAttribute("aria-current");
  const piece = table.element.querySelector(`.piece[data-side="${side}"][data-place="${place}"]`);
  piece?.setAttribute("aria-current", "true");
  const text = piece?.closest(".pieces");
  if (text) text.scrollTop = piece.offsetTop - text.offsetTop - text.clientHeight / 2;
  const { overview } = table.page;
  table.page.say(`token ${place}, ${new Side(overview.sides[side]).label(place)}`);
}
