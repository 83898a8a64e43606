// How decided a head is: how far its weights are from the same weight on each key that a query may attend to.

const EVEN = 0.16; // nats; a head below this is nearly even, as in the figures of `foveate.viewer.heatmaps`

/** The mean distance of the rows from even weights, in nats; null while the entropy of the head is not known. Of a map
    whose cells have several positions, the number of keys of a query is that of the cells with weight. */
function decision(overview, site, head, { rows, columns, values }) {
  const { entropy, queries, keys } = overview.sites[site];
  if (entropy[head] === null) return null;
  const size = rows * columns;
  const over = cells(overview.sides[queries].count, rows);
  const along = cells(overview.sides[keys].count, columns);
  let sum = 0;
  for (let row = 0; row < rows; row++) {
    let reached = 0;
    for (let column = 0; column < columns; column++)
      if (values[head * size + row * columns + column] > 0) reached += along[column + 1] - along[column];
    sum += (over[row + 1] - over[row]) * Math.log(Math.max(1, reached));
  }
  return Math.max(0, sum / over[rows] - entropy[head]);
}

/** Whether a head with this decision is nearly even; with one or two keys there is nothing to decide. */
const isEven = (decided, keys) => decided !== null && decided < EVEN && keys > 2;
