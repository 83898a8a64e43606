// The visible part of a large map, its scale, and the gestures that move it.

const LARGEST_CELL = 46;

// Maximum movement of a pointer, in pixels, that still counts as a click; a finger is never quite still.
const STILL = { mouse: 4, pen: 8, touch: 12 };

/** Maps positions (queries down, keys across) to pixels. Each axis has its own scale; both are zoomed together. */
class Camera {
  constructor(rows, columns) {
    Object.assign(this, { rows, columns, zoom: 1, left: 0, top: 0, inset: 0, width: 1, height: 1, fit: [1, 1] });
  }

  /** Set the size of the plot in pixels, and keep its corner. */
  layout(width, height) {
    Object.assign(this, { width, height });
    const [across, down] = [width / this.columns, height / this.rows];
    const alike = Math.min(across, down, LARGEST_CELL);
    const square = Math.max(across, down) < 3 * Math.min(across, down);
    this.fit = square ? [alike, alike] : [Math.min(across, LARGEST_CELL), Math.min(down, LARGEST_CELL)];
    this.settle();
  }

  get most() {
    return Math.max(1, LARGEST_CELL / Math.min(...this.fit));
  }

  /** Width of a key and height of a query, in pixels. */
  get across() {
    return Math.min(this.fit[0] * this.zoom, Math.max(this.fit[0], LARGEST_CELL));
  }

  get down() {
    return Math.min(this.fit[1] * this.zoom, Math.max(this.fit[1], LARGEST_CELL));
  }

  x(key) {
    return (key - this.left) * this.across;
  }

  y(query) {
    return (query - this.top) * this.down;
  }

  /** The queries and keys that are at least partly visible. */
  get seen() {
    return {
      rows: [Math.floor(this.top), Math.min(this.rows, Math.ceil(this.top + this.height / this.down))],
      columns: [Math.floor(this.left), Math.min(this.columns, Math.ceil(this.left + this.room / this.across))],
    };
  }

  at(x, y) {
    const [key, query] = [Math.floor(this.left + x / this.across), Math.floor(this.top + y / this.down)];
    const inside = key >= 0 && query >= 0 && key < this.columns && query < this.rows;
    return inside ? { query, key } : null;
  }

  /** Width of the visible part: what is left beside the inset. */
  get room() {
    return this.width - this.inset;
  }

  /** Zoom so that the pair at a point stays there; `x` counts from the left of the part, before the inset. */
  zoomAt(x, y, factor) {
    const [key, query] = [this.left + (x - this.inset) / this.across, this.top + y / this.down];
    this.zoom = clamp(this.zoom * factor, 1, this.most);
    this.inset = Math.max(0, x - key * this.across); // room beside the first key, as where the map is centred
    this.left = key - (x - this.inset) / this.across;
    this.top = query - y / this.down;
    this.settle();
  }

  move(x, y) {
    const beside = this.zoom > 1 ? clamp(-x, 0, this.inset) : 0; // first the map fills its part
    this.inset -= beside;
    x += beside;
    this.left -= x / this.across;
    this.top -= y / this.down;
    this.settle();
  }

  /** Show a part that a link names; it is fitted at the next layout. */
  restore(zoom, top, left, inset) {
    Object.assign(this, { zoom, top, left, inset });
  }

  whole() {
    this.zoom = 1;
    this.settle();
  }

  /** Scroll a query and a key into view, each unless null. */
  reveal(query, key) {
    const [high, wide] = [this.height / this.down, this.room / this.across];
    if (query !== null && (query < this.top || query + 1 > this.top + high)) this.top = query + 0.5 - high / 2;
    if (key !== null && (key < this.left || key + 1 > this.left + wide)) this.left = key + 0.5 - wide / 2;
    this.settle();
  }

  settle() {
    this.zoom = clamp(this.zoom, 1, this.most);
    const centred = Math.max(0, this.width - this.fit[0] * this.columns) / 2;
    this.inset = this.zoom === 1 ? centred : Math.min(this.inset, Math.max(centred, this.width - this.across * this.columns));
    this.left = clamp(this.left, 0, Math.max(0, this.columns - this.room / this.across));
    this.top = clamp(this.top, 0, Math.max(0, this.rows - this.height / this.down));
  }
}

/** Translate drag, pinch, wheel and double click on an element into calls of `on`: move, zoom, hover, leave, choose. */
function gestures(element, on) {
  const down = new Map();
  let moved = 0;

  const still = (event) => STILL[event.pointerType] ?? STILL.mouse;
  const place = (event) => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    moved = down.size ? Infinity : 0;
    down.set(event.pointerId, place(event));
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = down.get(event.pointerId);
    if (!before) return on.hover(...now);
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const far = ([x, y]) => Math.max(10, Math.hypot(x - other[0], y - other[1]));
      on.zoom((now[0] + other[0]) / 2, (now[1] + other[1]) / 2, far(now) / far(before));
    } else {
      moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (moved > still(event)) on.move(now[0] - before[0], now[1] - before[1]);
    }
    return down.set(event.pointerId, now);
  });
  const up = (event) => {
    const clicked = down.delete(event.pointerId) && moved <= still(event) && event.type === "pointerup";
    if (clicked) on.choose(...place(event));
  };
  element.addEventListener("pointerup", up);
  element.addEventListener("pointercancel", up);
  element.addEventListener("pointerleave", () => on.leave());
  element.addEventListener("dblclick", (event) => on.zoom(...place(event), 2.5));
  element.addEventListener(
    "wheel",
    (event) => {
      // In a notebook the wheel must scroll the notebook.
      if (window !== window.top && !event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      on.zoom(...place(event), Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0022)));
    },
    { passive: false },
  );
}
