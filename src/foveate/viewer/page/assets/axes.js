// Around the plot of a map: its labels, and for each row the weight of keys that are not drawn.

const LEGIBLE = 13; // pixels between two labels
const TITLES = 66; // pixels beside the plot for the titles of the axes
const REST = 34; // pixels of the strip with the remaining weight
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const SLANT = Math.SQRT1_2; // height of a text at 45 degrees, relative to its length

/** Divide the canvas of a map into labels and plot; a plot that is smaller than its part is centred. */
function arrange(map, width, height) {
  const { head, camera } = map;
  const context = map.canvas.getContext("2d");
  context.font = `600 ${FONT}`; // the font of a chosen label
  const most = Math.min(120, width * 0.22);
  const widest = (side, steps) => {
    const apart = Math.max(1, Math.floor(side.count / 60));
    let found = 24;
    for (let place = 0; place < side.count; place += apart) {
      for (const step of steps) found = Math.max(found, context.measureText(labelled(side, place, step)).width);
    }
    return Math.min(found + 2, most);
  };
  const parted = (...steps) => {
    const [beside, slant] = [Math.max(TITLES, widest(head.queries, steps) + 14), widest(head.keys, steps)];
    const above = Math.ceil((slant + 12) * SLANT) + 10;
    const margin = Math.max(above, head.complete ? 0 : REST + 14);
    return { beside, slant, above, plot: [width - beside - margin, height - above - 8] };
  };
  let parts = parted(1);
  const cell = Math.min(parts.plot[0] / head.keys.count, parts.plot[1] / head.queries.count);
  if (cell < LEGIBLE / SLANT) parts = parted(1, 2); // if cells are small, only some are labelled, with numbers
  const { beside, slant, above, plot } = parts;
  Object.assign(map, { beside, slant });
  camera.layout(...plot);
  map.plotWidth = Math.min(camera.room, camera.across * head.keys.count);
  map.plotHeight = Math.min(camera.height, camera.down * head.queries.count);
  map.left = Math.round(map.beside + camera.inset);
  map.top = above;
}

/** The label of a position if every `step`-th position has one; with a number unless all have one. */
function labelled(side, place, step) {
  if (!side.told || step === 1) return cut(side.short(place), 24);
  return `${place} ${cut(side.short(place), 14)}`;
}

function paintLabels(map, context) {
  const { camera, page } = map;
  const { rows, columns } = camera.seen;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const [place, step] of marks(rows, camera.down, LEGIBLE, [
    page.query,
    page.hovered?.query,
    ...page.found("query"),
  ])) {
    const y = camera.y(place + 0.5);
    if (y >= 0 && y <= map.plotHeight)
      paintLabel(map, context, "query", place, step, map.left - 8, map.top + y, map.beside - 12);
  }
  context.textAlign = "left";
  for (const [place, step] of marks(columns, camera.across, LEGIBLE / SLANT, [
    page.key,
    page.hovered?.key,
    ...page.found("key"),
  ])) {
    const x = camera.x(place + 0.5);
    if (x < 0 || x > map.plotWidth) continue;
    context.save();
    context.translate(map.left + x + 2, map.top - 7);
    context.rotate(-Math.PI / 4);
    paintLabel(map, context, "key", place, step, 0, 0, map.slant);
    context.restore();
  }
}

/** Titles of the axes, in the corner: each query writes its output from the keys that it reads. */
function paintTitles(map, context) {
  const { theme } = map.page;
  context.font = `600 ${FONT}`;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillStyle = theme.key;
  context.fillText("reads →", map.left - 8, map.top - 24);
  context.fillStyle = theme.query;
  context.fillText("writes ↓", map.left - 8, map.top - 9);
}

function paintLabel(map, context, name, place, step, x, y, space) {
  const { page, head } = map;
  const [side, found] = name === "query" ? [head.queries, page.found("query")] : [head.keys, page.found("key")];
  const { theme } = page;
  const chosen = page[name] === place;
  context.font = chosen || found.has(place) ? `600 ${FONT}` : FONT;
  context.fillStyle = theme.muted;
  if (page.hovered?.[name] === place) context.fillStyle = theme.text;
  if (found.has(place)) context.fillStyle = theme.found;
  if (chosen) context.fillStyle = theme[name];
  context.fillText(fitted(context, labelled(side, place, step), space), x, y);
}

/** The positions of an axis to label, with the step: all or every n-th, and always the important ones. */
function marks([from, to], size, apart, first) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000];
  const step = size >= apart ? 1 : (steps.find((each) => each * size >= 2 * apart) ?? 100000);
  const shown = [];
  const add = (place) => {
    const free = shown.every((other) => Math.abs(other - place) * size >= apart);
    if (place >= from && place < to && free) shown.push(place);
  };
  for (const place of first) if (Number.isInteger(place)) add(place);
  for (let place = Math.ceil(from / step) * step; place < to; place += step) add(place);
  return shown.map((place) => [place, step]);
}

function fitted(context, text, space) {
  while (text.length > 2 && context.measureText(text).width > space)
    text = `${Array.from(text).slice(0, -2).join("")}…`;
  return text;
}

/** Draw the remaining weight of each row as a bar to the right of the plot. */
function paintRest(map, context) {
  const { head, camera, page } = map;
  const left = map.left + map.plotWidth + 8;
  context.fillStyle = page.theme.muted;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  context.save();
  context.translate(left + 8, map.top - 7);
  context.rotate(-Math.PI / 4);
  context.fillText("rest", 0, 0);
  context.restore();
  context.save();
  context.beginPath();
  context.rect(left, map.top, REST, map.plotHeight);
  context.clip();
  const { rows } = camera.seen;
  for (let query = rows[0]; query < rows[1]; query++) {
    const row = head.row(query);
    if (!row) continue;
    const [top, bottom] = [map.top + Math.round(camera.y(query)), map.top + Math.round(camera.y(query + 1))];
    const gap = bottom - top >= 9 ? 1 : 0;
    context.fillStyle = page.theme.line;
    context.fillRect(left, top, REST, bottom - top - gap);
    context.fillStyle = page.theme.muted;
    context.fillRect(left, top, REST * row.rest, bottom - top - gap);
  }
  context.restore();
}
