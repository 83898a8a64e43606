// Sources of the page's data. A source is an object with four methods; each returns a promise.
//
//   overview()                         the head of the page, as `foveate.viewer.page.header.Head` describes it: title,
//                                      notes, sites, sides; a picture also has its address in `url`. Sites are those of
//                                      one measure: see measures.js.
//   maps(site)                         the small maps of all heads of a site, for the overview, and as background of a
//                                      head: { rows, columns, values }, values of heads x rows x columns.
//   rows(site, head, from, to)         the largest weights of queries from..to-1: { keys, weights, rest }, the keys and
//                                      weights of (to - from) x kept, in the order of the keys, -1 if there are no
//                                      more; rest, of (to - from), is the total weight of all other keys.
//   tile(site, head, rows, columns)    a finer map of a part, if there is one, else null. The part is given as
//                                      [from, to] for its rows and for its columns; the map has the actual part:
//                                      { rows, columns, height, width, values }; a value is, as in maps, the total
//                                      weight on all keys of a cell, averaged over its queries.
//
//   points(site, head, from, to)       of a site that has `points`: see points.js.
//
// Sites and heads are numbers. A source may have `prompt`, an element that the page puts above the overview; `batch`,
// the number of rows to request at once; and `ahead`, the number of rows to load before showing a head. Values of a site's
// `entropy` that are not computed yet are null. If a site has `told`, it is a sentence that says what is exact.
// The page shows the message of a rejected promise, so its text is written for the user.

/** The source of a saved page: blocks in the page itself, unpacked at the first request. */
class EmbeddedSource {
  constructor(page) {
    this.page = page;
    this.unpacked = new Map();
  }

  async overview() {
    const head = JSON.parse(this.page.getElementById("document").textContent);
    for (const { picture } of head.sides) {
      if (picture) picture.url = `data:${picture.type};base64,${this.text(`picture-${picture.place}`)}`;
    }
    head.sites.forEach((site, place) => (site.place = place));
    const measures = [...new Set(head.sites.map(({ shows }) => shows))];
    this.measure ??= measures[0];
    const sites = head.sites.filter(({ shows }) => shows === this.measure);
    this.head = { ...head, sites, measures, measure: this.measure };
    this.unpacked.clear();
    return this.head;
  }

  choose(measure) {
    this.measure = measure;
    return true;
  }

  async maps(site) {
    const { heads, queries, keys, exact, unit, place } = this.shape(site);
    const [rows, columns] = [Math.min(queries, CELLS), Math.min(keys, CELLS)];
    if (exact) {
      const { weights } = await this.all(site);
      return { rows, columns, values: pooled(weights, heads, queries, keys, rows, columns) };
    }
    const [codes] = await this.planes(`maps-${place}`, [[heads * rows * columns, 1]]);
    const values = decoded(codes, 8, unit);
    await this.sign(values, site, heads * queries * this.head.sites[site].kept);
    return { rows, columns, values };
  }

  async rows(site, head, from, to) {
    const { queries, kept } = this.shape(site);
    const { keys, weights, rest } = await this.all(site);
    const first = head * queries;
    const [start, end] = [(first + from) * kept, (first + to) * kept];
    return {
      keys: keys.subarray(start, end),
      weights: weights.subarray(start, end),
      rest: rest.subarray(first + from, first + to),
    };
  }

  async points(site, head, from, to) {
    const { points, heads, place } = this.head.sites[site];
    const { queries } = this.shape(site);
    const block = `points-${place}`;
    if (!this.unpacked.has(block)) {
      const total = heads * queries * points;
      this.unpacked.set(block, this.planes(block, [[total, 2], [total, 2], [total, 2]]));
    }
    const [across, down, weights] = await this.unpacked.get(block);
    const part = (codes) => codes.subarray((head * queries + from) * points, (head * queries + to) * points);
    return { across: placed(part(across)), down: placed(part(down)), weights: decoded(part(weights), 16) };
  }

  async tile() {
    return null;
  }

  shape(site) {
    const { heads, queries, keys, kept, bits, unit, place } = this.head.sites[site];
    const [over, along] = [this.head.sides[queries].count, this.head.sides[keys].count];
    return { heads, queries: over, keys: along, kept, bits, unit, place, exact: kept === along };
  }

  /** The rows of all heads of a site. */
  all(site) {
    if (!this.unpacked.has(site)) this.unpacked.set(site, this.unpack(site));
    return this.unpacked.get(site);
  }

  async unpack(site) {
    const { heads, queries, keys, kept, bits, exact, unit, place: own } = this.shape(site);
    const size = bytes(2 ** bits - 1);
    const total = heads * queries * kept;
    if (exact) {
      const [codes] = await this.planes(`rows-${own}`, [[total, size]]);
      const places = new Int32Array(total);
      for (let place = 0; place < total; place++) places[place] = place % keys;
      const weights = decoded(codes, bits, unit);
      await this.sign(weights, site);
      return { keys: places, weights, rest: new Float32Array(heads * queries) };
    }
    const parts = [
      [total, bytes(keys - 1)],
      [total, size],
      [heads * queries, size],
    ];
    const [gaps, codes, rest] = await this.planes(`rows-${own}`, parts);
    const found = { keys: new Int32Array(total), weights: new Float32Array(total), rest: decoded(rest, bits, unit) };
    const table = decoder(bits, unit);
    for (let head = 0; head < heads; head++) {
      for (let query = 0; query < queries; query++) {
        let key = -1;
        for (let place = 0; place < kept; place++) {
          const from = (head * kept + place) * queries + query;
          const into = (head * queries + query) * kept + place;
          key += gaps[from] + 1;
          found.keys[into] = codes[from] ? key : -1;
          found.weights[into] = table[codes[from]];
        }
      }
    }
    await this.sign(found.weights, site);
    return found;
  }

  /** Give numbers of a difference their signs, which are in a block of their own, from a place on. */
  async sign(values, site, from = 0) {
    const { shows, place } = this.head.sites[site];
    if (shows !== "difference") return;
    const signs = await inflated(this.text(`signs-${place}`));
    for (let at = 0; at < values.length; at++) if (signs[from + at]) values[at] = -values[at];
  }

  /** The numbers of a block, whose bytes are separated: for each part all low bytes, then all high ones. */
  async planes(name, parts) {
    const block = await inflated(this.text(name));
    let start = 0;
    return parts.map(([length, size]) => {
      const numbers = size === 1 ? block.subarray(start, start + length) : new Uint32Array(length);
      for (let place = 0; size > 1 && place < size; place++) {
        const shift = 8 * place;
        for (let each = 0; each < length; each++) numbers[each] |= block[start + place * length + each] << shift;
      }
      start += length * size;
      return numbers;
    });
  }

  text(name) {
    const block = this.page.getElementById(name);
    if (!block) throw new Error(`This page is damaged: ${name} is missing.`);
    return block.textContent;
  }
}

const CELLS = 64;
const RANGE = 20;

const bytes = (greatest) => Math.max(1, Math.ceil(Math.log2(greatest + 1) / 8));

async function inflated(text) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error(
      "This browser cannot unpack the page's data (it has no DecompressionStream). " +
        "Chrome and Edge from 80, Safari from 16.4 and Firefox from 113 can.",
    );
  }
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#%()*+,-./:;=?@[]^_{|}";

/** Decode base85: five characters for each four bytes. */
function bytesOf(text) {
  const digits = new Uint8Array(128).fill(84);
  for (let digit = 0; digit < 85; digit++) digits[LETTERS.charCodeAt(digit)] = digit;
  const groups = Math.ceil(text.length / 5);
  const view = new DataView(new ArrayBuffer(4 * groups));
  for (let group = 0; group < groups; group++) {
    let word = 0;
    for (let place = 5 * group; place < 5 * group + 5; place++) {
      word = 85 * word + (place < text.length ? digits[text.charCodeAt(place)] : 84);
    }
    view.setUint32(4 * group, word);
  }
  return new Uint8Array(view.buffer, 0, Math.floor((4 * text.length) / 5));
}

/** The weight of each code: 0 is no weight; the others divide the logarithmic range from 2^-20 to 1 evenly, in units. */
function decoder(bits, unit) {
  const steps = 2 ** bits - 2;
  const weight = (code) => (code ? unit * 2 ** (RANGE * ((code - 1) / steps - 1)) : 0);
  return Float32Array.from({ length: steps + 2 }, (_, code) => weight(code));
}

/** Shares of a picture, from half of it before its edge to half of it behind the other. */
const placed = (codes) => Float32Array.from(codes, (code) => -0.5 + (2 * code) / (2 ** 16 - 1));

function decoded(codes, bits, unit = 1) {
  const table = decoder(bits, unit);
  const weights = new Float32Array(codes.length);
  for (let place = 0; place < codes.length; place++) weights[place] = table[codes[place]];
  return weights;
}

/** The small maps of heads whose weights are all known. */
function pooled(weights, heads, queries, keys, rows, columns) {
  if (rows === queries && columns === keys) return weights;
  const values = new Float32Array(heads * rows * columns);
  const over = cells(queries, rows);
  const along = cells(keys, columns);
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < rows; row++) {
      const height = over[row + 1] - over[row];
      for (let query = over[row]; query < over[row + 1]; query++) {
        for (let column = 0; column < columns; column++) {
          let sum = 0;
          for (let key = along[column]; key < along[column + 1]; key++)
            sum += weights[(head * queries + query) * keys + key];
          values[(head * rows + row) * columns + column] += sum / height;
        }
      }
    }
  }
  return values;
}
