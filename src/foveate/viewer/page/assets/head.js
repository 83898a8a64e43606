// One open head: its sides, its small map, and the rows of it that have arrived.

const BATCH = 1024;
const COMING = "on its way"; // in place of a weight that has not arrived

class Head {
  constructor(source, overview, site, head, maps) {
    Object.assign(this, { source, site, head });
    this.info = overview.sites[site];
    this.queries = new Side(overview.sides[this.info.queries]);
    this.keys = new Side(overview.sides[this.info.keys]);
    this.kept = this.info.kept;
    this.batch = source.batch ?? BATCH;
    this.exact = this.kept === this.keys.count;
    this.reach = this.info.windows.length ? new Reach(this.info.windows) : null;
    this.complete = isComplete(this.info, this.keys.count);
    this.entropy = this.info.entropy[head];
    this.rows = maps.rows;
    this.columns = maps.columns;
    this.map = maps.values.subarray(head * maps.rows * maps.columns, (head + 1) * maps.rows * maps.columns);
    this.mapTop = largest(this.map) || 1;
    this.over = cells(this.queries.count, this.rows);
    this.along = cells(this.keys.count, this.columns);
    this.batches = new Map();
    this.rests = new Map();
    this.arrived = () => {};
  }

  /** Fetch the rows of some queries; `arrived` is called when they are there. */
  async want(from, to) {
    const asked = [];
    for (let batch = Math.floor(from / this.batch); batch * this.batch < Math.min(to, this.queries.count); batch++) {
      if (!this.batches.has(batch)) asked.push(this.fetch(batch));
    }
    if (asked.length) {
      await Promise.all(asked);
      this.arrived();
    }
  }

  async fetch(batch) {
    this.batches.set(batch, null);
    const [from, to] = [batch * this.batch, Math.min((batch + 1) * this.batch, this.queries.count)];
    try {
      this.batches.set(batch, await this.source.rows(this.site, this.head, from, to));
    } catch (error) {
      this.batches.delete(batch);
      throw error;
    }
  }

  /** What a query looks at: keys with their weights, and the rest; null while it has not arrived. */
  row(query) {
    const found = this.batches.get(Math.floor(query / this.batch));
    if (!found) return null;
    const place = query % this.batch;
    const [from, to] = [place * this.kept, (place + 1) * this.kept];
    return { keys: found.keys.subarray(from, to), weights: found.weights.subarray(from, to), rest: found.rest[place] };
  }

  /** Of how many queries the rows have arrived. */
  get here() {
    return Array.from(this.batches.values()).reduce((sum, rows) => sum + (rows?.rest.length ?? 0), 0);
  }

  /** What is chosen, in words: a query, a key, or both. */
  told(query, key) {
    const parts = [];
    const [best] = query === null ? [] : this.top(query);
    if (query !== null) parts.push(`query ${query}, ${this.queries.label(query)}`);
    if (best && key === null)
      parts.push(`looks most at ${best.key}, ${this.keys.label(best.key)}: ${figures(best.weight)}`);
    if (key !== null) parts.push(`key ${key}, ${this.keys.label(key)}`);
    if (query !== null && key !== null) parts.push(this.figures(query, key));
    else if (query !== null && !this.row(query)) parts.push(COMING);
    return parts.join("; ");
  }

  /** The keys of a row that have weight, the largest first. */
  top(query) {
    const row = this.row(query);
    if (!row) return [];
    const pairs = Array.from(row.keys, (key, place) => ({ key, weight: row.weights[place] }));
    return pairs.filter(({ key, weight }) => key >= 0 && weight > 0).sort((one, other) => other.weight - one.weight);
  }

  /** What one key of each cell in a row of the small map has on average, leaving out the top keys, which are known. */
  rest(row) {
    const found = this.rests.get(row);
    if (found) return found;
    const [from, to] = [this.over[row], this.over[row + 1]];
    const weights = this.map.slice(row * this.columns, (row + 1) * this.columns).map((value) => value * (to - from));
    const places = new Float32Array(this.columns);
    let left = 0;
    for (let query = from; query < to; query++) {
      const known = this.row(query);
      if (!known) return this.shared(row);
      for (let column = 0; column < this.columns; column++) {
        const end = this.causal ? Math.min(this.along[column + 1], query + 1) : this.along[column + 1];
        places[column] += Math.max(0, end - this.along[column]);
      }
      known.keys.forEach((key, place) => {
        if (key < 0) return;
        const column = within(this.along, key);
        weights[column] -= known.weights[place];
        places[column] -= 1;
      });
      left += known.rest;
    }
    weights.forEach((weight, column) => (weights[column] = places[column] > 0 ? Math.max(0, weight) : 0));
    const scale = left / (weights.reduce((sum, weight) => sum + weight, 0) || 1); // small maps are less precise than rows
    weights.forEach((weight, column) => (weights[column] = places[column] > 0 ? (weight * scale) / places[column] : 0));
    this.rests.set(row, weights);
    return weights;
  }

  /** The weight of each key for a query; those that are not known one by one share what remains as the small map
      does, or evenly within a window. */
  estimate(query) {
    const { keys, weights, rest } = this.row(query);
    const found = new Float32Array(this.keys.count);
    if (rest > 0) {
      const shares = this.reach ? null : this.rest(within(this.over, query));
      const end = this.causal ? query + 1 : found.length;
      for (let key = 0, column = 0; key < end; key++) {
        while (this.along[column + 1] <= key) column++;
        found[key] = shares ? shares[column] : Number(this.reach.has(query, key));
      }
    }
    for (const key of keys) if (key >= 0) found[key] = 0;
    const sum = found.reduce((total, share) => total + share, 0);
    const most = least(weights); // what is not among the top has no more than the last of them
    for (let key = 0; sum > 0 && key < found.length; key++) found[key] = Math.min(most, (found[key] * rest) / sum);
    keys.forEach((key, place) => {
      if (key >= 0) found[key] = weights[place];
    });
    return found;
  }

  /** The largest weight of the queries from..to-1, as far as they have arrived. */
  most(from, to) {
    let most = 0;
    for (let query = from; query < to; query++) {
      const row = this.row(query);
      if (row) most = Math.max(most, largest(row.weights));
    }
    return most;
  }

  /** A row of the small map, the weight of each cell shared evenly by its keys. */
  shared(row) {
    const values = this.map.slice(row * this.columns, (row + 1) * this.columns);
    return values.map((value, column) => value / (this.along[column + 1] - this.along[column]));
  }

  /** Whether, by all that is known of it, no query looks at a later key; what is pooled then lies on earlier keys. */
  get causal() {
    if (this.exact || this.queries.count !== this.keys.count || !this.row(this.kept - 1)) return false;
    this.known ??= this.onlyBefore();
    return this.known;
  }

  onlyBefore() {
    for (let row = 0; row < this.rows; row++) {
      for (let column = row + 1; column < this.columns; column++)
        if (this.map[row * this.columns + column] > 0) return false;
    }
    for (let query = 0; this.row(query); query++) {
      const { keys } = this.row(query);
      if (keys.some((key) => key > query)) return false;
      if (query < this.kept - 1 && keys.filter((key) => key >= 0).length > query + 1) return false;
    }
    return true;
  }

  /** The weight of a pair; where only the largest of a row are known, `below` is what it is no larger than. */
  weight(query, key) {
    const row = this.row(query);
    const place = row ? row.keys.indexOf(key) : -1;
    if (place >= 0) return { weight: row.weights[place] };
    const finer = this.tile && single(this.tile) ? cellAt(this.tile, query, key) : null;
    if (finer) return { weight: finer.value };
    if (!row) return null;
    if (this.exact || row.rest === 0 || !this.reaches(query, key)) return { weight: 0 };
    return { below: Math.min(least(row.weights), row.rest) };
  }

  /** Whether, by all that is known, a query may look at a key. */
  reaches(query, key) {
    return this.reach ? this.reach.has(query, key) : !this.causal || key <= query;
  }

  /** The weight of a pair in figures, as far as it is known. */
  figures(query, key) {
    const known = this.weight(query, key);
    if (!known) return COMING;
    return known.below === undefined ? figures(known.weight) : `at most ${figures(known.below)}`;
  }

  /** The queries that look at a key, among the rows that have arrived and the keys they keep; most first. */
  lookers(key) {
    const found = [];
    for (const [batch, rows] of this.batches) {
      for (let place = 0; rows && place < rows.keys.length; place++) {
        if (rows.keys[place] !== key || rows.weights[place] === 0) continue;
        found.push({ query: batch * this.batch + Math.floor(place / this.kept), weight: rows.weights[place] });
      }
    }
    return found.sort((one, other) => other.weight - one.weight);
  }

  /** The small map, as finer ones are given. */
  get whole() {
    const [rows, columns] = [this.queries, this.keys].map((side) => [0, side.count]);
    return { rows, columns, height: this.rows, width: this.columns, values: this.map };
  }

  /** What is exact and what is not, in a sentence. */
  get exactness() {
    if (this.info.told) return this.info.told;
    const { precision, map_precision: rough } = this.info;
    const where = this.exact ? "" : " within a window";
    if (this.complete) return `Every weight${where}, within ${percent(precision)} of itself.`;
    const near = this.reach ? "shared evenly in a window, from afar " : "";
    return (
      `Top ${this.kept} keys of each row exact, within ${percent(precision)} of the weight; ` +
      `the rest ${near}pooled to ${this.rows} × ${this.columns} cells, within ${percent(rough)}.`
    );
  }
}

/** The smallest of some weights that is any. */
const least = (weights) => weights.reduce((low, weight) => (weight > 0 ? Math.min(low, weight) : low), 1);
