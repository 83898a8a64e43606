// Overlays of pictures. An overlay sets the size of the picture, draws the weights of a query on it, and finds the key
// at a point (from 0 to 1, across and down).

const DARK = "#06090d";

/** Over an image: patches with little weight are darkened, or each patch has the colour of its weight. */
class Patches {
  constructor(view) {
    this.view = view;
    this.brightest = "Brightest patch";
  }

  /** The largest size that fits, with the proportions of the image. */
  size(room, high) {
    const { image, head } = this.view;
    const { picture } = head.keys;
    const ratio = image.naturalWidth ? image.naturalWidth / image.naturalHeight : picture.width / picture.height;
    const width = Math.min(room, Math.max(180, high) * ratio, 900);
    return [Math.floor(width), Math.floor(width / ratio)];
  }

  at(x, y) {
    const { before, picture } = this.view.head.keys;
    const row = clamp(Math.floor(y * picture.height), 0, picture.height - 1);
    return before + row * picture.width + clamp(Math.floor(x * picture.width), 0, picture.width - 1);
  }

  box(key) {
    const { before, picture } = this.view.head.keys;
    const [across, down] = [this.width / picture.width, this.height / picture.height];
    const [row, column] = [Math.floor((key - before) / picture.width), (key - before) % picture.width];
    const [left, top] = [Math.round(column * across), Math.round(row * down)];
    return [left, top, Math.round((column + 1) * across) - left, Math.round((row + 1) * down) - top];
  }

  paint(context, width, height, weights) {
    Object.assign(this, { width, height });
    const { head, page, top, coloured, foveated, points } = this.view;
    const { before, count } = head.keys;
    for (let key = before; key < count; key++) {
      const share = Math.min(1, Math.sqrt(Math.abs(weights[key]) / top));
      if (numbers.signed) {
        context.globalAlpha = 0.15 + 0.7 * share;
        context.fillStyle = page.theme.scale.colour(weights[key], top);
        context.fillRect(...this.box(key));
        continue;
      }
      if (foveated) {
        this.sharpen(context, key, share);
        continue;
      }
      context.globalAlpha = (coloured ? 0.25 + 0.6 * share : 0.8 * (1 - share)) * (points.on ? 0.6 : 1);
      context.fillStyle = coloured ? scales.dark.colour(weights[key], top) : DARK;
      context.fillRect(...this.box(key));
    }
    context.globalAlpha = 1;
    if (head.reach) this.outline(context, (key) => head.reach.has(this.view.query, key));
    if (this.view.alike && this.view.query >= before) this.frame(context, this.view.query, "#8fd0ff");
    if (page.hovered?.key >= before) this.frame(context, page.hovered.key, "#ffc98a");
    if (page.key !== null && page.key >= before) this.frame(context, page.key, "#ffb14e");
  }

  /** Draw the patch over the blurred image, the sharper the larger its weight. */
  sharpen(context, key, share) {
    const { image } = this.view;
    const [left, top, width, height] = this.box(key);
    const [across, down] = [image.naturalWidth / this.width, image.naturalHeight / this.height];
    context.globalAlpha = share;
    context.drawImage(image, left * across, top * down, width * across, height * down, left, top, width, height);
  }

  frame(context, key, colour) {
    this.stroke(context, colour, () => context.strokeRect(...this.box(key)));
  }

  /** Draw a line around the patches that are inside. */
  outline(context, inside) {
    const { count, picture } = this.view.head.keys;
    const lines = new Path2D();
    for (let key = 0; key < count; key++) {
      if (!inside(key)) continue;
      const [left, top, width, height] = this.box(key);
      const column = key % picture.width;
      const edges = [
        [column > 0 && key - 1, left, top, left, top + height],
        [column < picture.width - 1 && key + 1, left + width, top, left + width, top + height],
        [key >= picture.width && key - picture.width, left, top, left + width, top],
        [key + picture.width < count && key + picture.width, left, top + height, left + width, top + height],
      ];
      for (const [beside, ...line] of edges) {
        if (beside !== false && inside(beside)) continue;
        lines.moveTo(line[0], line[1]);
        lines.lineTo(line[2], line[3]);
      }
    }
    this.stroke(context, "#ffffff", () => context.stroke(lines));
  }

  /** Draw with a dark edge, which is visible on any picture. */
  stroke(context, colour, draw) {
    for (const [width, style] of [
      [4, DARK],
      [2, colour],
    ]) {
      context.lineWidth = width;
      context.strokeStyle = style;
      draw();
    }
  }
}

/** Over a spectrogram: parts with little weight are darkened; below are the weights as bars, and the time. */
class Moments {
  constructor(view) {
    this.view = view;
    this.brightest = "Tallest bar";
  }

  size(room, high) {
    return [room, clamp(high, 200, 380)];
  }

  at(x) {
    const { before, count } = this.view.head.keys;
    return clamp(before + Math.floor(x * (count - before)), before, count - 1);
  }

  paint(context, width, height, weights) {
    const { head, page, top } = this.view;
    const { before, count } = head.keys;
    const { theme } = page;
    const [axis, high] = [20, Math.round(height * 0.32)];
    const below = height - high - axis;
    context.fillStyle = theme.surface;
    context.fillRect(0, below, width, high + axis);
    const bins = Math.min(count - before, Math.floor(width / 2));
    const bounds = cells(count - before, bins).map((moment) => moment + before);
    for (let bin = 0; bin < bins; bin++) {
      const share = Math.min(1, largest(weights.subarray(bounds[bin], bounds[bin + 1])) / top);
      const [left, right] = [Math.round((bin * width) / bins), Math.round(((bin + 1) * width) / bins)];
      context.globalAlpha = 0.72 * (1 - Math.sqrt(share));
      context.fillStyle = DARK;
      context.fillRect(left, 0, right - left, below);
      context.globalAlpha = 1;
      const bar = (high - 8) * share;
      context.fillStyle = theme.query;
      context.fillRect(left, height - axis - bar, right - left - (right - left > 3 ? 1 : 0), bar);
    }
    this.paintTime(context, width, height, axis);
    const mark = (key, colour) => {
      context.fillStyle = colour;
      context.fillRect(Math.round(((key - before + 0.5) * width) / (count - before)), 0, 2, height - axis);
    };
    if (this.view.alike && this.view.query >= before) mark(this.view.query, "#8fd0ff");
    if (page.hovered?.key >= before) mark(page.hovered.key, "#ffc98a");
    if (page.key !== null && page.key >= before) mark(page.key, "#ffb14e");
  }

  paintTime(context, width, height, axis) {
    const { seconds } = this.view.head.keys.picture;
    const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120].find((each) => (each / seconds) * width >= 56) ?? 300;
    context.font = FONT;
    context.fillStyle = this.view.page.theme.muted;
    context.textBaseline = "alphabetic";
    context.textAlign = "center";
    for (let mark = 0; mark * step <= seconds; mark++) {
      const x = ((mark * step) / seconds) * width;
      const name = `${Number((mark * step).toFixed(1))} s`;
      const half = context.measureText(name).width / 2;
      context.fillText(name, clamp(x, half + 6, width - half - 6), height - 5);
      context.fillRect(Math.min(x, width - 1), height - axis, 1, 4);
    }
  }
}
