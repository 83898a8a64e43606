// The prompt of the explorer: the input of the model, its progress, and earlier inputs.

class Prompt {
  constructor(about, source) {
    Object.assign(this, { about, source, page: null, busy: false, measure: "weights" });
    source.choose = (measure) => this.choose(measure);
    this.status = make("span", { class: "prompt-status muted", role: "status" });
    this.error = make("p", { class: "prompt-error", role: "alert", hidden: true });
    this.button = make("button", { type: "submit", class: "prompt-look" }, "Look");
    this.past = new Past((look) => this.again(look));
    this.removed = new Removed(() => this.look());
    this.plain = { given: null, notes: [] }; // what the model said last with all its heads
    this.first = new Fields(about, "given", () => this.look());
    this.second = new Fields(about, "given-beside", () => this.look(), "What shall it read beside that?");
    this.two = make("button", { type: "button", class: "prompt-write prompt-two" }, "Beside");
    this.two.title = "A second input, whose heads stand beside those of the first";
    this.two.addEventListener("click", () => this.pair(this.two.getAttribute("aria-pressed") === "false"));
    this.pair(false);
    const keys = make("span", { class: "muted keys" }, about.takes === "text" ? "Enter; Shift+Enter for a new line" : "A file may be dropped anywhere");
    const models = about.second ? `A: ${about.name} · B: ${about.second}` : about.name;
    const name = make("label", { class: "prompt-name", htmlFor: "given" }, make("b", {}, models));
    const more = make("span", { class: "muted" }, limitOf(about));
    const fields = [...this.first.elements, ...this.second.elements];
    this.element = make(
      "form",
      { class: "prompt", "aria-label": "What the model shall read" },
      make("div", { class: "prompt-head" }, name, more),
      make("div", { class: "prompt-field" }, ...fields, this.button, this.two, ...new Writer(this).buttons()),
      ...this.examples(),
      this.removed.element,
      make("div", { class: "prompt-foot" }, this.error, this.status, keys, this.past.list),
    );
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.look();
    });
    source.measuring = (pending) => this.measuring(pending);
    if (about.takes !== "text") this.takeDropped();
  }

  /** A file that is dropped on the page is the input, as if it had been chosen. */
  takeDropped() {
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => {
      event.preventDefault();
      if (!event.dataTransfer.files.length) return;
      const { field } = event.target === this.second.field ? this.second : this.first;
      field.files = event.dataTransfer.files;
      field.dispatchEvent(new Event("change"));
    });
  }

  /** Show or hide the field of a second input. */
  pair(on) {
    this.two.setAttribute("aria-pressed", String(on));
    this.second.show(on);
    if (on) this.second.field.focus({ preventScroll: true });
  }

  /** Texts to begin with; a choice is looked at once. */
  examples() {
    const { takes, examples } = this.about;
    if (takes !== "text" || !examples.length) return [];
    const buttons = examples.map((text) => {
      const button = make("button", { type: "button", class: "prompt-example", title: text }, cut(text, 60));
      button.addEventListener("click", () => {
        this.first.field.value = text;
        this.look();
      });
      return button;
    });
    return [make("div", { class: "prompt-examples" }, make("span", { class: "muted" }, "Try:"), ...buttons)];
  }

  /** Send the input to the model, and show the result. */
  async look() {
    if (this.looking === this.wanted) return; // it is being processed
    await this.attempt(async () => {
      this.looking = this.wanted;
      await this.lookOnce(await this.first.read());
    });
  }

  async lookOnce(given) {
    const beside = await this.beside(given);
    const removed = beside ? [] : this.removed.of(given); // two looks have sites of other names
    if (removed.length) await this.before(given);
    const measured = this.measure === "weights" ? {} : { measure: this.measure };
    const names = [await this.begin({ ...given, ...measured, ...(removed.length ? { removed } : {}) })];
    if (beside) names.push(await this.begin({ ...beside, ...measured }, this.about.second ? "?model=second" : ""));
    const id = names.join("~");
    const head = await this.done(id);
    const texts = [given, ...(beside && beside !== given ? [beside] : [])].map(({ text }) => text ?? "");
    this.past.remember(id, head.title, texts, removed, this.measure);
    if (removed.length) this.removed.compare(this.plain.notes, head.notes);
    else if (!beside) this.plain = { given: JSON.stringify(given), notes: head.notes };
    await this.show(id, head);
  }

  /** Look once more, at another measure; the page of what is shown stays if that fails. */
  async choose(measure) {
    const before = this.measure;
    this.measure = measure;
    await this.look();
    if (this.error.hidden) return false; // it is shown
    this.measure = before;
    this.page.menu.open(this.source.head);
    return false;
  }

  /** What the model says of an input with all its heads. */
  async before(given) {
    const key = JSON.stringify(given);
    if (this.plain.given === key) return;
    const { notes } = await this.done(await this.begin(given));
    this.plain = { given: key, notes };
  }

  /** Whether heads of what is shown can be removed: a map of relevance is that of a stack of layers. */
  get removes() {
    return this.about.removes && this.measure !== "relevance" && !this.source.name?.includes("~");
  }

  async begin(given, model = "") {
    return (await (await asked(`/looks${model}`, posted(given))).json()).id;
  }

  /** What is looked at beside an input: another one, the same by another model, or nothing. */
  async beside(given) {
    const two = !this.second.field.hidden && !this.second.empty;
    if (two) return this.second.read();
    return this.about.second ? given : null;
  }

  get wanted() {
    const { first, second, removed } = this;
    return `${this.measure}\n${first.wanted}\n${second.field.hidden ? "" : second.wanted}\n${JSON.stringify(removed.asked)}`;
  }

  /** The head of the page, as soon as the model has run; the server answers after a second, ready or not. */
  async done(id) {
    for (;;) {
      const response = await asked(`/looks/${id}`);
      const found = await response.json();
      if (response.status === 200) return found;
      const running = found.state === "running";
      this.status.textContent = running ? `Looking … ${Math.round(found.seconds)} s` : "Waiting for the model …";
    }
  }

  async show(id, head) {
    this.source.show(id, head);
    await this.page.load();
    document.documentElement.setAttribute("data-ready", "");
    this.past.show(id);
  }

  /** Show an earlier result, if the server still has it. */
  async again(look) {
    if (!look) return;
    await this.attempt(async () => {
      try {
        if (this.about.takes === "text") this.fill(look.texts ?? []);
        const head = await this.done(look.id);
        this.removed.take(look.removed ?? []);
        this.measure = look.measure ?? "weights";
        this.removed.answer.replaceChildren();
        await this.show(look.id, head);
      } catch (error) {
        if (error.gone) this.past.forget(look);
        this.past.show(this.source.name);
        throw error;
      }
    });
  }

  /** Put the texts of an earlier result into the fields. */
  fill([first, second]) {
    if (first) this.first.field.value = first;
    this.pair(second !== undefined);
    if (second !== undefined) this.second.field.value = second;
  }

  /** Run a task that may take long or fail, and show its state; of the tasks requested meanwhile only the last runs. */
  async attempt(action) {
    this.next = action;
    if (this.busy) return;
    this.busy = true;
    this.button.disabled = true;
    while (this.next) {
      const current = this.next;
      this.next = this.looking = null;
      this.error.hidden = true;
      this.status.textContent = "";
      try {
        await current();
      } catch (error) {
        this.error.textContent = sentence(error.message);
        this.error.hidden = false;
      }
    }
    this.looking = null;
    this.busy = false;
    this.button.disabled = false;
    this.measuring(this.source.pending);
  }

  measuring(pending) {
    clearTimeout(this.telling);
    const tell = () => {
      if (!this.busy) this.status.textContent = pending ? "Measuring …" : "";
    };
    this.telling = setTimeout(tell, pending ? 300 : 0);
  }

  /** Restore the state of this tab after it was closed or reloaded; otherwise begin with an empty field. */
  async begun() {
    this.past.show();
    await this.again(this.past.looks[0]);
    if (!this.source.head) this.error.hidden = true;
    this.first.field.focus({ preventScroll: true });
  }
}

const posted = (body) => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

/** Start the page: there is nothing below the prompt until the first result. */
function explore() {
  const source = new RemoteSource();
  const prompt = new Prompt(JSON.parse(find("explorer").textContent), source);
  source.prompt = prompt.element;
  source.removing = {
    possible: () => prompt.removes,
    has: (...which) => Boolean(prompt.removed.find(...which)),
    toggle: (...which) => prompt.removed.toggle(...which),
  };
  prompt.page = new Page(source);
  prompt.begun();
}
