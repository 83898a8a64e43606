// The source of the explorer's page: its server, which computes some weights for each request.

const FINE = 256; // rows and columns of a finer map whose cells have several positions
const SINGLE = 512; // up to this many rows and columns have a cell each, which is the server's limit

/** The answer of the server; a refusal becomes an error with a text for the user. */
async function asked(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The explorer does not answer. Is it still running?");
  }
  if (response.ok) return response;
  const { message } = await response.json().catch(() => ({}));
  const error = new Error(message ?? `The explorer answered with the number ${response.status}.`);
  throw Object.assign(error, { gone: response.status === 404 });
}

class RemoteSource {
  constructor() {
    this.batch = 128;
    this.ahead = 0;
    this.turn = 0;
    this.pending = 0;
    this.measuring = () => {};
  }

  /** Set the result to show: its name, and the head of its page. */
  show(name, head) {
    Object.assign(this, { name, head });
    for (const site of head.sites) {
      const means = site.step > 1 ? `one query in ${site.step}` : "all queries";
      site.told = isComplete(site, head.sides[site.keys].count)
        ? "Every weight is exact."
        : `Top ${site.kept} keys of each row exact, and every weight when zoomed in to single tokens. ` +
          `Cells of small maps are means of ${means}.`;
    }
  }

  async overview() {
    this.head.measure = this.head.sites[0].shows;
    this.head.measures = Object.keys(MEASURES).filter((measure) => measure !== "difference"); // of pages alone
    return this.head;
  }

  async maps(site) {
    const { heads, rows, columns } = this.shape(site);
    const { head } = this;
    const found = new Float32Array(await this.measured(`maps/${site}`));
    const values = found.subarray(heads);
    head.sites[site].entropy = Array.from(found.subarray(0, heads));
    head.sites[site].unit = Math.max(head.sites[site].unit, largest(values));
    return { rows, columns, values };
  }

  async rows(site, head, from, to) {
    const { kept } = this.head.sites[site];
    const found = await this.measured(`rows/${site}/${head}?rows=${from},${to}`);
    const total = (to - from) * kept;
    return {
      keys: new Int32Array(found, 0, total),
      weights: new Float32Array(found, 4 * total, total),
      rest: new Float32Array(found, 8 * total, to - from),
    };
  }

  async points(site, head, from, to) {
    const found = new Float32Array(await this.measured(`points/${site}/${head}?rows=${from},${to}`));
    const size = found.length / 3;
    const [across, down, weights] = [0, 1, 2].map((part) => found.subarray(part * size, (part + 1) * size));
    return { across, down, weights };
  }

  /** Request one finer map at a time; of the waiting requests only the last is sent: the others are out of date. */
  async tile(site, head, rows, columns) {
    const turn = ++this.turn;
    await this.last?.catch(() => null);
    if (turn !== this.turn) return null;
    this.last = this.finer(site, head, rows, columns);
    return this.last;
  }

  async finer(site, head, rows, columns) {
    const lengths = [rows[1] - rows[0], columns[1] - columns[0]];
    const single = Math.max(...lengths) <= SINGLE;
    const [height, width] = lengths.map((length) => (single ? length : Math.min(length, FINE)));
    const place = `tile/${site}/${head}?rows=${rows}&columns=${columns}&size=${height},${width}`;
    return { rows, columns, height, width, values: new Float32Array(await this.measured(place)) };
  }

  async measured(path) {
    this.measuring(++this.pending);
    try {
      return await (await asked(`/looks/${this.name}/${path}`)).arrayBuffer();
    } finally {
      this.measuring(--this.pending);
    }
  }

  shape(site) {
    const { heads, queries, keys } = this.head.sites[site];
    const [over, along] = [queries, keys].map((side) => Math.min(this.head.sides[side].count, CELLS));
    return { heads, rows: over, columns: along };
  }
}
