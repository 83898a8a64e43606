// The mean of all heads of a site, which the page shows as one more head. Its number is that of the heads.

const isMean = (info, head) => head === info.heads;

/** What a page calls a site. A model that attends itself, not in a part of it, has no path: it is "model". */
const titleOf = ({ name }) => (/^(#|$)/.test(name) ? `model${name}` : name);

/** The name of a head, of the mean of all heads, or of a rollout, which has a single one. */
function nameOfHead(info, head) {
  if (info.rollout) return "rollout";
  return isMean(info, head) ? "mean of heads" : `head ${head}`;
}

/** Number of maps of a site: its heads, and their mean if there are several. */
const countMaps = ({ heads }) => (heads > 1 ? heads + 1 : 1);

/** A source of data with the mean of each site's heads. */
class WithMeans {
  constructor(source) {
    this.source = source;
  }

  get batch() {
    return this.source.batch;
  }

  get ahead() {
    return this.source.ahead;
  }

  choose(measure) {
    return this.source.choose(measure);
  }

  get removing() {
    return this.source.removing;
  }

  async overview() {
    this.head = await this.source.overview();
    return this.head;
  }

  async maps(site) {
    const { heads } = this.head.sites[site];
    const found = await this.source.maps(site);
    if (heads === 1) return found;
    const size = found.rows * found.columns;
    const values = new Float32Array((heads + 1) * size);
    values.set(found.values);
    for (let place = 0; place < heads * size; place++) values[heads * size + (place % size)] += found.values[place] / heads;
    return { ...found, values };
  }

  async rows(site, head, from, to) {
    const info = this.head.sites[site];
    if (!isMean(info, head)) return this.source.rows(site, head, from, to);
    const heads = Array.from({ length: info.heads }, (_, each) => this.source.rows(site, each, from, to));
    return meanRows(await Promise.all(heads), info.kept, to - from);
  }

  /** The points of a mean are those of all heads, each with its share of the weight. */
  async points(site, head, from, to) {
    const info = this.head.sites[site];
    if (!isMean(info, head)) return this.source.points(site, head, from, to);
    const heads = Array.from({ length: info.heads }, (_, each) => this.source.points(site, each, from, to));
    const found = await Promise.all(heads);
    const all = (name) => Float32Array.from(found.flatMap((one) => Array.from(one[name])));
    return { across: all("across"), down: all("down"), weights: all("weights").map((weight) => weight / info.heads) };
  }

  /** There is no finer map of a mean: it would need one of each head. */
  async tile(site, head, rows, columns) {
    return isMean(this.head.sites[site], head) ? null : this.source.tile(site, head, rows, columns);
  }
}

/** The mean of some rows of several heads: the `kept` keys with the largest sums of known weights, and the rest. */
function meanRows(heads, kept, count) {
  const keys = new Int32Array(count * kept).fill(-1);
  const weights = new Float32Array(count * kept);
  const rest = new Float32Array(count);
  for (let row = 0; row < count; row++) {
    const sums = new Map();
    for (const found of heads) {
      rest[row] += found.rest[row] / heads.length;
      for (let place = row * kept; place < (row + 1) * kept; place++) {
        const key = found.keys[place];
        if (key >= 0) sums.set(key, (sums.get(key) ?? 0) + found.weights[place] / heads.length);
      }
    }
    const ordered = [...sums].sort(([, one], [, other]) => other - one);
    for (const [, weight] of ordered.slice(kept)) rest[row] += weight;
    const chosen = ordered.slice(0, kept).sort(([one], [other]) => one - other);
    chosen.forEach(([key, weight], place) => {
      keys[row * kept + place] = key;
      weights[row * kept + place] = weight;
    });
  }
  return { keys, weights, rest };
}

/** The mean entropy of the rows of a map that has each weight, in nats; null for other maps. Rows of a part of a map sum
    to less than 1: their entropy is that of the weights divided by their sum. */
function entropyOf({ rows, columns, values }, head, queries, keys) {
  if (rows !== queries || columns !== keys) return null;
  let sum = 0;
  for (let row = 0; row < rows; row++) {
    const own = values.subarray((head * rows + row) * columns, (head * rows + row + 1) * columns);
    const total = own.reduce((all, weight) => all + weight, 0);
    for (const weight of own) if (weight > 0) sum -= (weight / total) * Math.log(weight / total);
  }
  return sum / rows;
}
