// Windows of a picture: which patches may attend to which, as in `foveate.sight.layouts.Windows`.

class Reach {
  constructor([queries, keys]) {
    this.over = windowsOf(queries);
    this.along = windowsOf(keys);
    this.sizes = new Map();
    for (const part of this.along) this.sizes.set(part, (this.sizes.get(part) ?? 0) + 1);
  }

  has(query, key) {
    return this.over[query] === this.along[key];
  }

  /** Number of keys that a query may attend to: fewer than a window has if the picture ends inside it. */
  size(query) {
    return this.sizes.get(this.over[query]) ?? 0;
  }
}

/** For each patch a number that is equal for patches that may attend to each other. Patches that a roll brings into one
    window from opposite edges of the picture have different numbers, since models mask them. */
function windowsOf({ height, width, window: [high, wide], shift: [down, right] }) {
  const [rows, columns] = [high * Math.ceil(height / high), wide * Math.ceil(width / wide)]; // padded
  return Int32Array.from({ length: height * width }, (_, place) => {
    const [row, column] = [Math.floor(place / width), place % width];
    const over = Math.floor(((row - down + rows) % rows) / high);
    const along = Math.floor(((column - right + columns) % columns) / wide);
    return 4 * ((over * columns) / wide + along) + 2 * (row < down) + (column < right);
  });
}

/** Whether the rows of a site have all positive weights: of all keys, or of all keys in a window. */
function isComplete({ kept, windows: [, keys] }, count) {
  return kept === count || (keys !== undefined && kept >= keys.window[0] * keys.window[1]);
}
