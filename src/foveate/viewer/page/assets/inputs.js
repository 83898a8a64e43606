// The inputs of the model in the overview: texts as pieces, pictures as thumbnails.

const EXCERPT = 600;

function excerpt(side, groups) {
  const shown = side.labels
    .slice(0, EXCERPT)
    .map((_, place) => make("bdi", { class: "piece" }, cut(side.label(place), 40)));
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
