// What maps show: weights, or what is computed from them, as `foveate.sight.measured_look` has it. A page of several
// measures has a menu of them; each has sites of its own.
//
// The `overview()` of a source has the sites of one measure, `measure`, and the names of all, `measures`. Its method
// `choose(measure)` changes to another one; it returns whether the page has to load the overview again.

const MEASURES = {
  weights: ["Weights", "weight", ""],
  "without-sinks": [
    "Weights without sinks",
    "weight",
    "Keys that most queries of a head rest on are left out: weights are shares of the rest.",
  ],
  values: [
    "Weight × size of value",
    "weight × size of value",
    "Each weight is multiplied with the size of what it weighs, after the output projection: what a key really gives.",
  ],
  gradients: [
    "Weight × gradient",
    "weight × gradient",
    "Each weight is multiplied with its gradient: what made the model's answer likelier. What made it less likely is 0.",
  ],
  relevance: [
    "Relevance",
    "relevance",
    "Weights times their positive gradients, through all layers of a stack: how much each position contributes to the answer.",
  ],
};

MEASURES.difference = [
  "Difference, B − A",
  "difference",
  "The weights of B less those of A, for tokens that stand for each other: red where A looks more, blue where B does.",
];

const OF_WEIGHTS = ["weights", "without-sinks"]; // shares, which sum to at most 1

/** The largest number that the maps of a page show: 1 for weights. */
function mostOf({ measure, sites }) {
  return OF_WEIGHTS.includes(measure) ? 1 : Math.max(...sites.map(({ unit }) => unit));
}

/** The menu of measures, in the bar. */
class MeasureMenu {
  constructor(page) {
    this.page = page;
    this.list = find("measure");
    this.list.addEventListener("change", () => this.choose(this.list.value));
  }

  async choose(measure) {
    const { page } = this;
    if (measure === page.overview?.measure) return;
    const named = location.hash.replace(/measure=[^&]*/, `measure=${measure}`); // the address of a link names another
    if (named !== location.hash) history.replaceState(null, "", named);
    await page.attempt(async () => {
      if (await page.source.choose(measure)) await page.load();
    });
  }

  /** Show the measures of an overview; a page of weights alone has no menu. */
  open({ measure, measures }) {
    const { page } = this;
    const options = measures.map((value) => make("option", { value }, MEASURES[value][0]));
    this.list.replaceChildren(...options);
    this.list.value = measure;
    this.list.hidden = measures.length === 1 && measure === "weights";
    this.list.disabled = measures.length === 1;
    const top = OF_WEIGHTS.includes(measure) ? "a weight of 1 in all maps" : "the largest number of all maps";
    find("alike").title = `The last colour is ${top}`;
    find("measured").textContent = MEASURES[measure][2];
    numbers.signed = page.theme.signed = measure === "difference";
    page.theme.apply();
    numbers.shares = OF_WEIGHTS.includes(measure);
  }
}
