// Colours of differences: red below 0, blue above.

/** A scale with 0 in the middle: its first colour is that of the largest number below 0. */
class DivergingScale extends Scale {
  step(weight, top) {
    const share = Math.min(1, Math.sqrt(Math.abs(weight) / top)) || 0;
    return Math.round(((STEPS - 1) * (1 + Math.sign(weight) * share)) / 2);
  }

  get none() {
    return this.css[Math.round((STEPS - 1) / 2)];
  }
}

const DIVERGING = {
  light: ["#67001f", "#b2182b", "#d6604d", "#f4a582", "#f7f9fb", "#92c5de", "#4393c3", "#2166ac", "#053061"],
  dark: ["#ffb3a0", "#ff7a5c", "#c8503a", "#7a352c", "#181e29", "#274c74", "#3a7fbf", "#62aef2", "#b3dcff"],
};

const diverging = { light: new DivergingScale(DIVERGING.light), dark: new DivergingScale(DIVERGING.dark) };
