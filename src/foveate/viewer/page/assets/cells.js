// Cells: groups of positions of a side, in small maps and in finer ones.

/** The start of each cell into which positions are pooled, and the end. */
function cells(places, parts) {
  return Int32Array.from({ length: parts + 1 }, (_, part) => Math.floor((part * places) / parts));
}

/** The part that has a position, given the starts of the parts in `bounds`. */
function within(bounds, place) {
  let part = Math.min(bounds.length - 2, Math.floor((place * (bounds.length - 1)) / bounds[bounds.length - 1]));
  while (bounds[part + 1] <= place) part++;
  while (bounds[part] > place) part--;
  return part;
}

/** Whether a map of a part has a cell for each position. */
const single = ({ rows, columns, height, width }) => height === rows[1] - rows[0] && width === columns[1] - columns[0];

/** The cell of a map of a part at a query and a key: its bounds and value; null outside of the part. */
function cellAt({ rows, columns, height, width, values }, query, key) {
  if (query < rows[0] || query >= rows[1] || key < columns[0] || key >= columns[1]) return null;
  const found = (place, [start, end], parts) => {
    const bounds = cells(end - start, parts);
    const part = within(bounds, place - start);
    return [part, [start + bounds[part], start + bounds[part + 1]]];
  };
  const [[row, over], [column, along]] = [found(query, rows, height), found(key, columns, width)];
  return { rows: over, columns: along, value: values[row * width + column] };
}
