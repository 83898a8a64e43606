// One open head: its sides, its small map, and the rows that are loaded.

const BATCH = 1024;
const COMING = "on its way"; // in place of a weight that is not loaded

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
    this.mean = isMean(this.info, head);
    this.name = nameOfHead(this.info, head);
    this.entropy = this.mean ? entropyOf(maps, head, this.queries.count, this.keys.count) : this.info.entropy[head];
    this.decided = decision(overview, site, head, maps);
    this.rows = maps.rows;
    this.columns = maps.columns;
    this.map = maps.values.subarray(head * maps.rows * maps.columns, (head + 1) * maps.rows * maps.columns);
    this.mapTop = topOf(largest(this.map), this.columns) || 1;
    this.over = cells(this.queries.count, this.rows);
    this.along = cells(this.keys.count, this.columns);
    this.part = null; // see Parts
    this.batches = new Map();
    this.rests = new Map();
    this.arrived = () => {};
  }

  /** Load the rows of some queries; `arrived` is called when they are loaded. */
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

  /** The keys of a query with their weights, and the rest; null while they are not loaded. */
  row(query) {
    const found = this.batches.get(Math.floor(query / this.batch));
    if (!found) return null;
    const place = query % this.batch;
    const [from, to] = [place * this.kept, (place + 1) * this.kept];
    return { keys: found.keys.subarray(from, to), weights: found.weights.subarray(from, to), rest: found.rest[place] };
  }

  /** Number of queries whose rows are loaded. */
  get here() {
    return Array.from(this.batches.values()).reduce((sum, rows) => sum + (rows?.rest.length ?? 0), 0);
  }

  /** A text for the choice: a query, a key, or both. */
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

  /** The keys of a row with weight, in descending order. */
  top(query) {
    const row = this.row(query);
    if (!row) return [];
    const pairs = Array.from(row.keys, (key, place) => ({ key, weight: row.weights[place] }));
    return pairs.filter(({ key, weight }) => key >= 0 && weight !== 0 && inPart(this.part, query, key)).sort(bySize);
  }

  /** The average weight of a key in each cell of a row of the small map, without the known weights of the top keys. */
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
    // Small maps are less precise than rows.
    const scale = left / (weights.reduce((sum, weight) => sum + weight, 0) || 1);
    weights.forEach((weight, column) => (weights[column] = places[column] > 0 ? (weight * scale) / places[column] : 0));
    this.rests.set(row, weights);
    return weights;
  }

  /** The weight of each key for a query. Unknown weights are estimated from the rest, in proportion to the small map,
      or evenly within a window. */
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
    const most = least(weights); // other keys have at most the weight of the last top key
    for (let key = 0; sum > 0 && key < found.length; key++) found[key] = Math.min(most, (found[key] * rest) / sum);
    keys.forEach((key, place) => {
      if (key >= 0) found[key] = weights[place];
    });
    return found;
  }

  /** The largest weight of the queries from..to-1, among the loaded rows. */
  most(from, to) {
    let most = 0;
    for (let query = from; query < to; query++) {
      const row = this.row(query);
      if (row && !this.part) most = Math.max(most, largest(row.weights));
      else if (row) most = Math.max(most, this.top(query)[0]?.weight ?? 0);
    }
    return most;
  }

  /** A row of the small map, with the weight of each cell divided evenly among its keys. */
  shared(row) {
    const values = this.map.slice(row * this.columns, (row + 1) * this.columns);
    return values.map((value, column) => value / (this.along[column + 1] - this.along[column]));
  }

  /** Whether, as far as is known, no query attends to a later key; then pooled weight belongs to earlier keys. */
  get causal() {
    if (this.exact || this.queries.count !== this.keys.count || !this.row(this.kept - 1)) return false;
    this.known ??= this.onlyBefore();
    return this.known;
  }

  onlyBefore() {
    for (let row = 0; row < this.rows; row++) {
      for (let column = row + 1; column < this.columns; column++)
        if (this.map[row * this.columns + column] !== 0) return false;
    }
    for (let query = 0; this.row(query); query++) {
      const { keys } = this.row(query);
      if (keys.some((key) => key > query)) return false;
      if (query < this.kept - 1 && keys.filter((key) => key >= 0).length > query + 1) return false;
    }
    return true;
  }

  /** The weight of a pair; if only the largest weights of a row are known, `below` is an upper bound. */
  weight(query, key) {
    const row = this.row(query);
    const place = row ? row.keys.indexOf(key) : -1;
    if (place >= 0) return { weight: row.weights[place] };
    const finer = this.tile && single(this.tile) ? cellAt(this.tile, query, key) : null;
    if (finer) return { weight: finer.value };
    if (!row) return null;
    if (this.exact || row.rest === 0 || !this.reaches(query, key)) return { weight: 0 };
    return { below: this.mean ? row.rest : Math.min(least(row.weights), row.rest) };
  }

  /** Whether, as far as is known, a query may attend to a key. */
  reaches(query, key) {
    return this.reach ? this.reach.has(query, key) : !this.causal || key <= query;
  }

  /** The weight of a pair as text, as far as it is known. */
  figures(query, key) {
    const known = this.weight(query, key);
    if (!known) return COMING;
    return known.below === undefined ? figures(known.weight) : `at most ${figures(known.below)}`;
  }

  /** The queries that attend to a key, among the loaded rows and their kept keys, in descending order. */
  lookers(key) {
    const found = [];
    for (const [batch, rows] of this.batches) {
      for (let place = 0; rows && place < rows.keys.length; place++) {
        if (rows.keys[place] !== key || rows.weights[place] === 0) continue;
        const query = batch * this.batch + Math.floor(place / this.kept);
        if (inPart(this.part, query, key)) found.push({ query, weight: rows.weights[place] });
      }
    }
    return found.sort(bySize);
  }

  /** The small map, in the format of finer ones. */
  get whole() {
    const [rows, columns] = [this.queries, this.keys].map((side) => [0, side.count]);
    return { rows, columns, height: this.rows, width: this.columns, values: this.map };
  }

  /** A sentence that says what is exact. */
  get exactness() {
    if (this.mean && !this.complete)
      return `Mean of the top ${this.kept} keys of each head's row; what a row does not list counts as part of the rest.`;
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

/** The smallest positive weight. */
const least = (weights) => weights.reduce((low, weight) => (weight > 0 ? Math.min(low, weight) : low), 1);

/** In descending order of the sizes of weights. */
const bySize = (one, other) => Math.abs(other.weight) - Math.abs(one.weight);
