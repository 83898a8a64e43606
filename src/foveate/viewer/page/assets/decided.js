// How decided a head is: how far its weights are from the same weight on each key that a query may attend to.

const EVEN = 0.16; // nats; a head below this is nearly even, as in the figures of `foveate.viewer.heatmaps`

/** The mean distance of the rows from even weights, in nats; null while the entropy of the head is not known. Of a map
    whose cells have several positions, the number of keys of a query is that of the cells with weight. */
function decision(overview, site, head, { rows, columns, values }) {
  const { entropy, queries, keys } = overview.sites[site];
  if (entropy[head] === null || entropy[head] === undefined) return null; // a mean has none
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
const isEven = (decided, keys) => numbers.shares && decided !== null && decided < EVEN && keys > 2;

const LEAST_TOP = 10; // the brightest colour is at least so many times an even weight: an even head looks pale and flat

const LEAST_TOP_OF_FEW = 0.25; // of few keys

const MOST_DIAGONAL = 0.5; // a head with more of its weights at the query's own place, or the next, is nothing to see

/** The share of the weights on cells whose queries and keys are at the same place or beside it; 0 of small maps, and of
    those with other queries than keys. */
function diagonalShare(map, rows, columns) {
  if (rows !== columns || rows < 8) return 0;
  let near = 0;
  for (let row = 0; row < rows; row++)
    for (const column of [row - 1, row, row + 1])
      if (column >= 0 && column < columns) near += map[row * columns + column];
  return near / (map.reduce((sum, weight) => sum + weight, 0) || 1);
}

/** The weight of the brightest colour, of a map with so many columns: the largest that is drawn, or more where all are
    nearly even. */
const topOf = (most, columns) => (numbers.shares ? Math.max(most, Math.min(LEAST_TOP / columns, LEAST_TOP_OF_FEW)) : most);

/** The largest weight of a small map, the weight of its brightest colour, and whether it follows the diagonal. */
const judge = (map, rows, columns) => ({
  largest: largest(map),
  top: topOf(largest(map), columns),
  diagonal: diagonalShare(map, rows, columns) > MOST_DIAGONAL,
});

/** Mark the most decided head of the overview, not one that follows its own place if there are others, and say what the
    marks mean and how large the weights are. */
function markHeads({ element, marked, page }) {
  const thumbs = [...element.querySelectorAll(".thumb:not(.derived)")].filter((each) => Number.isFinite(each.decided));
  const others = thumbs.filter(({ diagonal }) => !diagonal);
  const seen = others.length ? others : thumbs;
  const best = seen.reduce((most, each) => (each.decided > (most?.decided ?? EVEN) ? each : most), null);
  element.querySelector(".thumb.decided")?.classList.remove("decided");
  const told = [];
  if (best && thumbs.length > 1) {
    best.classList.add("decided");
    const name = `${titleOf(page.overview.sites[best.dataset.site])}, head ${best.dataset.head}`;
    const open = make("button", { type: "button", class: "link" }, name);
    open.addEventListener("click", () => best.click());
    told.push("Most decided: ", open, ". ");
  }
  const tops = thumbs.map((each) => each.largest).filter((top) => top > 0);
  const [least, most] = [Math.min(...tops), Math.max(...tops)].map(brief);
  if (tops.length) told.push(`The largest ${page.word} of a head is ${least === most ? most : `${least} to ${most}`}. `);
  const even = thumbs.filter((each) => each.classList.contains("even")).length;
  if (even) told.push(`≈ marks ${counted(even, "head")} with nearly even weights.`);
  marked.replaceChildren(...told);
}

const spread = (entropy) =>
  (entropy ?? null) === null
    ? "entropy on its way"
    : `entropy ${entropy.toFixed(2)} nats: as if evenly over ${Number(Math.exp(entropy).toPrecision(2))} keys`;
