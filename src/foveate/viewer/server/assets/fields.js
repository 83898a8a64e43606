// The fields of one input in the prompt of the explorer: a text, or a file and perhaps a question about it.

const PICTURES = "image/png, image/jpeg, image/webp, image/gif, image/bmp";

const SOUNDS = ".wav, .flac, .ogg, .oga, .mp3, audio/wav, audio/flac, audio/ogg, audio/mpeg";

/** How large an input may be, in words. */
function limitOf({ takes, tokens, bytes }) {
  const most = `${Math.floor(bytes / 2 ** 20)} MB`;
  if (takes === "text") return `up to ${count(tokens)} tokens`;
  return takes === "audio" ? `a sound, up to ${most}` : `an image, up to ${most}`;
}

class Fields {
  /** `look` is called when the input is complete. */
  constructor(about, id, look, told) {
    Object.assign(this, { about, look });
    this.field = about.takes === "text" ? this.text() : this.file();
    this.field.id = id;
    this.question = about.takes === "question" ? this.asked() : null;
    this.elements = this.question ? [this.field, this.question] : [this.field];
    if (told) {
      this.field.setAttribute("aria-label", told);
      if (about.takes === "text") this.field.placeholder = told;
    }
  }

  text() {
    const placeholder = "What shall the model read?";
    const field = make("textarea", { rows: 2, spellcheck: false, placeholder });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.look();
    });
    return field;
  }

  file() {
    const accept = this.about.takes === "audio" ? SOUNDS : PICTURES;
    const field = make("input", { type: "file", accept });
    field.addEventListener("change", () => {
      if (!this.question || this.question.value.trim()) this.look();
    });
    return field;
  }

  /** The field of the question about an image; Enter in it sends the form. */
  asked() {
    return make("input", { class: "prompt-question", type: "text", placeholder: "What is asked about the image?" });
  }

  show(shown) {
    for (const element of this.elements) element.hidden = !shown;
  }

  /** What tells one input from another. */
  get wanted() {
    return `${this.field.value}\n${this.question ? this.question.value : ""}`;
  }

  get empty() {
    return !this.field.value.trim();
  }

  /** What is sent to the server. */
  async read() {
    if (this.about.takes === "text") return { text: this.field.value };
    const [file] = this.field.files;
    if (!file) throw new Error("Choose a file first.");
    if (file.size > this.about.bytes) throw new Error(`${file.name} is too large: ${limitOf(this.about)}.`);
    const found = { name: file.name, data: await base64(file) };
    if (!this.question) return found;
    if (!this.question.value.trim()) throw new Error("Ask a question first.");
    return { ...found, question: this.question.value };
  }
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}
