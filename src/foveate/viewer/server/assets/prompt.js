// The prompt of the explorer: the input of the model, its progress, and earlier inputs.

const REMEMBERED = 6; // inputs that are kept while the tab is open
const LONGEST = 20000; // maximum length of an input that is kept

const WRITINGS = 32; // times that the model writes a few tokens, each with a look

const PICTURES = "image/png, image/jpeg, image/webp, image/gif, image/bmp";

class Prompt {
  constructor(about, source) {
    Object.assign(this, { about, source, page: null, busy: false });
    this.status = make("span", { class: "prompt-status muted", role: "status" });
    this.error = make("p", { class: "prompt-error", role: "alert", hidden: true });
    this.button = make("button", { type: "submit", class: "prompt-look" }, "Look");
    this.before = make("select", { class: "prompt-before", "aria-label": "Inputs before this one", hidden: true });
    this.before.addEventListener("change", () => this.again(this.before.value));
    this.field = about.takes === "text" ? this.text() : this.file();
    this.question = about.takes === "question" ? this.asked() : null;
    const keys = make("span", { class: "muted keys" }, about.takes === "text" ? "Enter; Shift+Enter for a new line" : "");
    const name = make("label", { class: "prompt-name", htmlFor: "given" }, make("b", {}, about.name));
    const more = make("span", { class: "muted" }, this.limit());
    this.element = make(
      "form",
      { class: "prompt", "aria-label": "What the model shall read" },
      make("div", { class: "prompt-head" }, name, more),
      make("div", { class: "prompt-field" }, this.field, ...(this.question ? [this.question] : []), this.button, ...this.writers()),
      ...this.examples(),
      make("div", { class: "prompt-foot" }, this.error, this.status, keys, this.before),
    );
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.look();
    });
    source.measuring = (pending) => this.measuring(pending);
    this.past = this.recall();
  }

  text() {
    const placeholder = "What shall the model read?";
    const field = make("textarea", { id: "given", rows: 2, spellcheck: false, placeholder });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.look();
    });
    return field;
  }

  /** Buttons that let the model go on with the text, or answer it as a message. */
  writers() {
    const button = (label, chat, title) => {
      const found = make("button", { type: "button", class: "prompt-write", title }, label);
      found.addEventListener("click", () => this.write(chat));
      return found;
    };
    const { writes, chats } = this.about;
    return [
      ...(writes ? [button("Write", "", "The model goes on; press again to stop")] : []),
      ...(chats ? [button("Chat", "yes", "What follows the last message is yours; press again to stop")] : []),
    ];
  }

  /** Let the model write a few tokens at a time, and look at the text after each. A second press stops it. */
  async write(chat) {
    if (this.writing) {
      this.writing = false;
      return;
    }
    this.writing = true;
    await this.attempt(async () => {
      for (let step = 0; step < WRITINGS && this.writing; step++) {
        const grown = await (await asked("/writings", posted({ text: this.field.value, chat }))).json();
        this.field.value = grown.text;
        this.field.scrollTop = this.field.scrollHeight;
        await this.lookOnce({ text: grown.text });
        if (grown.ended) break;
      }
    });
    this.writing = false;
  }

  /** Texts to begin with; a choice is looked at once. */
  examples() {
    const { takes, examples } = this.about;
    if (takes !== "text" || !examples.length) return [];
    const buttons = examples.map((text) => {
      const button = make("button", { type: "button", class: "prompt-example", title: text }, cut(text, 60));
      button.addEventListener("click", () => {
        this.field.value = text;
        this.look();
      });
      return button;
    });
    return [make("div", { class: "prompt-examples" }, make("span", { class: "muted" }, "Try:"), ...buttons)];
  }

  file() {
    const accept = this.about.takes === "audio" ? ".wav, audio/wav" : PICTURES;
    const field = make("input", { id: "given", type: "file", accept });
    field.addEventListener("change", () => {
      if (!this.question || this.question.value.trim()) this.look();
    });
    return field;
  }

  /** The field of the question about an image; Enter in it sends the form. */
  asked() {
    return make("input", { class: "prompt-question", type: "text", placeholder: "What is asked about the image?" });
  }

  limit() {
    const { takes, tokens, bytes } = this.about;
    const most = `${Math.floor(bytes / 2 ** 20)} MB`;
    if (takes === "text") return `up to ${count(tokens)} tokens`;
    return takes === "audio" ? `a .wav file, up to ${most}` : `an image, up to ${most}`;
  }

  /** Send the input to the model, and show the result. */
  async look() {
    if (this.looking === this.wanted()) return; // it is being processed
    await this.attempt(async () => {
      this.looking = this.wanted();
      await this.lookOnce(await this.given());
    });
  }

  async lookOnce(given) {
    const text = given.text ?? given.name;
    const { id } = await (await asked("/looks", posted(given))).json();
    const head = await this.done(id);
    this.remember({ id, title: head.title, text: text.length <= LONGEST ? text : "" });
    await this.show(id, head);
  }

  wanted() {
    return `${this.field.value}\n${this.question ? this.question.value : ""}`;
  }

  async given() {
    if (this.about.takes === "text") return { text: this.field.value };
    const [file] = this.field.files;
    if (!file) throw new Error("Choose a file first.");
    if (file.size > this.about.bytes) throw new Error(`${file.name} is too large: ${this.limit()}.`);
    const found = { name: file.name, data: await base64(file) };
    if (!this.question) return found;
    if (!this.question.value.trim()) throw new Error("Ask a question first.");
    return { ...found, question: this.question.value };
  }

  /** The head of the page, as soon as the model has run. */
  async done(id) {
    for (let pause = 60; ; pause = Math.min(1000, pause * 1.5)) {
      const response = await asked(`/looks/${id}`);
      const found = await response.json();
      if (response.status === 200) return found;
      const running = found.state === "running";
      this.status.textContent = running ? `Looking … ${Math.round(found.seconds)} s` : "Waiting for the model …";
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  async show(id, head) {
    this.source.show(id, head);
    await this.page.load();
    document.documentElement.setAttribute("data-ready", "");
    this.listPast(id);
  }

  /** Show an earlier result, if the server still has it. */
  async again(id) {
    const known = this.past.find((each) => each.id === id);
    if (!known) return;
    await this.attempt(async () => {
      try {
        if (this.about.takes === "text" && known.text) this.field.value = known.text;
        await this.show(id, await this.done(id));
      } catch (error) {
        if (error.gone) this.past = this.past.filter((each) => each !== known);
        this.listPast(this.source.name);
        throw error;
      }
    });
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
  async begin() {
    this.listPast();
    const [last] = this.past;
    if (last) await this.again(last.id);
    if (!this.source.head) this.error.hidden = true;
    this.field.focus({ preventScroll: true });
  }

  remember(look) {
    this.past = [look, ...this.past].slice(0, REMEMBERED);
    try {
      sessionStorage.setItem("foveate-looks", JSON.stringify(this.past));
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

  listPast(shown) {
    this.before.replaceChildren(...this.past.map(({ id, title }) => make("option", { value: id }, cut(title, 60))));
    this.before.hidden = this.past.length < 2;
    if (shown) this.before.value = shown;
  }
}

const posted = (body) => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

/** Start the page: there is nothing below the prompt until the first result. */
function explore() {
  const source = new RemoteSource();
  const prompt = new Prompt(JSON.parse(find("explorer").textContent), source);
  source.prompt = prompt.element;
  prompt.page = new Page(source);
  prompt.begin();
}
