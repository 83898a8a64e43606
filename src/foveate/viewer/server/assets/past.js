// Earlier inputs of the explorer: a list to choose from, which lasts as long as the browser's tab.

const REMEMBERED = 6; // inputs that are kept while the tab is open
const LONGEST = 20000; // maximum length of an input that is kept

class Past {
  /** `choose` is called with a look that is chosen from the list. */
  constructor(choose) {
    this.looks = this.recall();
    this.list = make("select", { class: "prompt-before", "aria-label": "Inputs before this one", hidden: true });
    this.list.addEventListener("change", () => choose(this.looks.find((each) => each.id === this.list.value)));
  }

  /** A look: its name, its title, and its text, or both texts. */
  remember(id, title, texts, removed = [], measure = "weights") {
    const kept = texts.every((text) => text.length <= LONGEST) ? texts : [];
    const pairs = removed.filter((each) => each.length > 2).length;
    const told = [[removed.length - pairs, "head"], [pairs, "weight"]].filter(([number]) => number).map((each) => counted(...each));
    const without = told.length ? ` (without ${told.join(" and ")})` : "";
    const shown = measure === "weights" ? "" : ` (${MEASURES[measure][0].toLowerCase()})`;
    this.looks = [{ id, title: `${title}${without}${shown}`, texts: kept, removed, measure }, ...this.looks].slice(0, REMEMBERED);
    try {
      sessionStorage.setItem("foveate-looks", JSON.stringify(this.looks));
    } catch {
      // Then they are kept only until the page is left.
    }
  }

  recall() {
    try {
      return JSON.parse(sessionStorage.getItem("foveate-looks")) ?? [];
    } catch {
      return [];
    }
  }

  forget(look) {
    this.looks = this.looks.filter((each) => each !== look);
  }

  show(chosen) {
    this.list.replaceChildren(...this.looks.map(({ id, title }) => make("option", { value: id }, cut(title, 60))));
    this.list.hidden = this.looks.length < 2;
    if (chosen) this.list.value = chosen;
  }
}
