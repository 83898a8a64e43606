// The inputs of the model in the overview: texts as pieces, pictures as thumbnails.

const EXCERPT = 600;

/** The inputs of the model: each text and picture once, a text with the names of its maps; null if there are none. */
function inputsOf({ sites, sides }) {
  const shown = [];
  const pictures = new Set();
  sides.forEach((head, place) => {
    const side = new Side(head);
    if (side.picture) {
      if (!pictures.has(side.picture.url)) shown.push(thumbnail(side));
      pictures.add(side.picture.url);
    } else if (side.told) {
      const users = sites.filter((site) => site.queries === place || site.keys === place);
      shown.push(excerpt(side, place, [...new Set(users.map((site) => site.group))]));
    }
  });
  return shown.length ? make("div", { class: "inputs" }, ...shown) : null;
}

function excerpt(side, number, groups) {
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
    make("h3", {}, "Tokens ", make("small", {}, `${count(side.count)} · ${groups.join(", ")}`)),
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
