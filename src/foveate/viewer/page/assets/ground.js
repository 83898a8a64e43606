// The plot of a map: the small map and finer ones as its background, with rows over it.

const WRITTEN = 34; // minimum size of a cell, in pixels, that shows its weight as a number

function paintGround(map, context) {
  const { head, near } = map;
  context.fillStyle = map.colour.none;
  context.fillRect(0, 0, map.plotWidth, map.plotHeight);
  if (head.exact) return;
  if (near && head.reach) paintWindows(map, context);
  else paintTile(map, context, { ...head.whole, value: near ? (row, column) => head.rest(row)[column] : null });
  if (map.tile) paintTile(map, context, map.tile);
  if (near && head.causal) paintFuture(map, context);
}

/** Draw a map of a part: the weights of its cells, unless `value` gives others. */
function paintTile(map, context, { rows, columns, height, width, values, value }) {
  const { camera, brightest, colour } = map;
  const over = cells(rows[1] - rows[0], height).map((place) => place + rows[0]);
  const along = cells(columns[1] - columns[0], width).map((place) => place + columns[0]);
  value ??= (row, column) => values[row * width + column];
  for (let row = 0; row < height; row++) {
    const [top, bottom] = [Math.round(camera.y(over[row])), Math.round(camera.y(over[row + 1]))];
    if (bottom < 0 || top > map.plotHeight) continue;
    for (let column = 0; column < width; column++) {
      const [left, right] = [Math.round(camera.x(along[column])), Math.round(camera.x(along[column + 1]))];
      if (right < 0 || left > map.plotWidth) continue;
      context.fillStyle = colour.colour(value(row, column), brightest);
      context.fillRect(left, top, right - left, bottom - top);
    }
  }
}

/** Whether a finer map, requested at some zoom, has as much detail of a part as another would. */
function suffices(tile, zoom, { rows, columns }) {
  const within = ([start, end], [from, to]) => start <= from && to <= end;
  return within(tile.rows, rows) && within(tile.columns, columns) && (single(tile) || zoom <= tile.zoom);
}

/** Draw the remaining weight of each visible row, evenly over the keys of its window whose weights are not known. */
function paintWindows({ head, camera, colour, brightest }, context) {
  const { rows, columns } = camera.seen;
  for (let query = rows[0]; query < rows[1]; query++) {
    const row = head.row(query);
    if (!row?.rest) continue;
    const others = head.reach.size(query) - row.keys.filter((key) => key >= 0).length;
    context.fillStyle = colour.colour(others > 0 ? row.rest / others : 0, brightest);
    const [top, bottom] = [Math.round(camera.y(query)), Math.round(camera.y(query + 1))];
    for (let key = columns[0]; key < columns[1]; key++) {
      if (!head.reach.has(query, key)) continue;
      const left = Math.round(camera.x(key));
      context.fillRect(left, top, Math.round(camera.x(key + 1)) - left, bottom - top);
    }
  }
}

/** Clear keys after the query, which have no weight: cells of the small map extend over the diagonal. */
function paintFuture({ camera, colour, plotWidth }, context) {
  const { rows } = camera.seen;
  context.fillStyle = colour.none;
  for (let query = rows[0]; query < rows[1]; query++) {
    const [top, bottom] = [Math.round(camera.y(query)), Math.round(camera.y(query + 1))];
    context.fillRect(Math.max(0, Math.round(camera.x(query + 1))), top, plotWidth, bottom - top);
  }
}

/** Draw the known weights of each visible row. */
function paintRows(map, context) {
  const { head, camera, colour, brightest } = map;
  const { rows, columns } = camera.seen;
  const size = Math.min(camera.across, camera.down);
  const gap = size >= 9 ? 1 : 0;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let query = rows[0]; query < rows[1]; query++) {
    const row = head.row(query);
    if (!row) continue;
    const [top, bottom] = [Math.round(camera.y(query)), Math.round(camera.y(query + 1))];
    row.keys.forEach((key, place) => {
      if (key < columns[0] || key >= columns[1] || !inPart(map.page.head.part, query, key)) return;
      const weight = row.weights[place];
      const [left, right] = [Math.round(camera.x(key)), Math.round(camera.x(key + 1))];
      const step = colour.step(weight, brightest);
      context.fillStyle = colour.css[step];
      context.fillRect(left, top, right - left - gap, bottom - top - gap);
      if (size < WRITTEN || !isTold(weight, map.page.most) || map.layered) return;
      context.fillStyle = readable(colour.bytes[step]);
      context.fillText(inCell(weight), (left + right - gap) / 2, (top + bottom - gap) / 2);
    });
  }
}

/** Black or white: the one with more contrast to a colour. */
function readable(colour) {
  const light = (channel) => (channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4);
  const [red, green, blue] = colour.map((channel) => light(channel / 255));
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? "#000000" : "#ffffff";
}
