// Helpers for all parts of the page: elements, labels, numbers.

/** Make an element with properties and with attributes that are no properties (role, aria-*, data-*). */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Replace the children of an element; if a button had the focus, the button at its position gets it. */
function refill(element, ...children) {
  const buttons = () => [...element.querySelectorAll("button")];
  const focused = buttons().indexOf(document.activeElement);
  element.replaceChildren(...children);
  if (focused >= 0) buttons()[focused]?.focus({ preventScroll: true });
}

const find = (id) => document.getElementById(id);

const clamp = (value, least, most) => Math.max(least, Math.min(most, value));

const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const JOINERS = "\u200c\u200d";
const NOTHING = /^\p{Default_Ignorable_Code_Point}+$/u; // such as a joiner or a variation selector alone

const written = (character) => `⟨${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** A visible form of a token: white space and control characters, which would hide or reorder it, are spelled out. */
function visible(text) {
  if (text === "") return "∅";
  text = text
    .replaceAll("\r\n", "↵")
    .replace(/[\n\r]/g, "↵")
    .replaceAll("\t", "⇥");
  if (text.trim() === "") return "␣".repeat(text.length);
  if (NOTHING.test(text)) return Array.from(text, written).join("");
  return text.replace(HIDDEN, (character) => (JOINERS.includes(character) ? character : written(character)));
}

/** The beginning of a text, with '…' if it was cut. */
function cut(text, length) {
  if (text.length <= length) return text;
  const characters = Array.from(text); // an emoji is one character with a length of 2
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join("")}…`;
}

const SMALLEST = 2 ** -20;

/** How numbers are told: `shares` are at most 1, and as exact as a page stores them. */
const numbers = { shares: true, signed: false };

/** A number with three significant digits. */
function figures(weight) {
  if (weight === 0) return "0";
  if (numbers.signed) return `${weight < 0 ? "−" : "+"}${Number(Math.abs(weight).toPrecision(3))}`;
  if (!numbers.shares) return String(Number(weight.toPrecision(3)));
  if (weight <= SMALLEST * 1.001) return "< 0.000001";
  if (weight >= 0.9995) return "1.00";
  if (weight >= 0.1) return weight.toFixed(3);
  return weight >= 0.0001 ? weight.toPrecision(3) : weight.toFixed(6);
}

/** A number with two digits, for a cell. */
function inCell(weight) {
  if (numbers.signed) return `${weight < 0 ? "−" : "+"}${Math.abs(weight).toFixed(2).replace(/^0/, "")}`;
  return (numbers.shares ? weight.toFixed(2) : String(Number(weight.toPrecision(2)))).replace(/^0/, "");
}

/** Whether a number is large enough to be written into its cell. */
const isTold = (weight, most) => Math.abs(weight) >= 0.005 * (numbers.signed ? 1 : most);

const percent = (part) => `${Number((100 * part).toPrecision(2))} %`;

const count = (number) => number.toLocaleString("en");

const counted = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

/** The queries or keys of a site: their number and names. */
class Side {
  constructor(head) {
    const { labels, picture } = head;
    Object.assign(this, { count: head.count, labels, picture });
    this.before = picture ? labels.length : 0;
  }

  /** Whether the positions have names. */
  get told() {
    return !this.picture && this.labels.length > 0;
  }

  label(place) {
    if (place < this.labels.length) return visible(this.labels[place]);
    if (!this.picture) return String(place);
    const after = place - this.before;
    if (this.picture.kind === "audio") return `${this.time(place).toFixed(2)} s`;
    return `row ${Math.floor(after / this.picture.width) + 1}, column ${(after % this.picture.width) + 1}`;
  }

  /** A short label; for a patch its row and column. */
  short(place) {
    if (place < this.labels.length || this.picture?.kind !== "image") return this.label(place);
    const after = place - this.before;
    return `(${Math.floor(after / this.picture.width) + 1}, ${(after % this.picture.width) + 1})`;
  }

  /** The middle of a position in a sound, in seconds. */
  time(place) {
    return ((place - this.before + 0.5) * this.picture.seconds) / (this.count - this.before);
  }
}

/** Values that the browser stores between visits, if it may. */
const remembered = {
  get(name) {
    try {
      return localStorage.getItem(`foveate-${name}`);
    } catch {
      return null;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem(`foveate-${name}`, value);
    } catch {
      // A frame in a notebook has no storage.
    }
  },
};

/** A cleared canvas of so many CSS pixels, with the screen's resolution; null while it has no size. */
function sharp(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (width < 1 || height < 1) return null;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Call a function at most once for each frame. */
function drawnLater(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}
