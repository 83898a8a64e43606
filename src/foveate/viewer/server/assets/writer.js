// The buttons of the explorer that let the model go on with a text, or answer it as a message.

const WRITINGS = 32; // times that the model writes a few tokens, each with a look

class Writer {
  constructor(prompt) {
    Object.assign(this, { prompt, writing: false });
  }

  buttons() {
    const { writes, chats } = this.prompt.about;
    return [
      ...(writes ? [this.button("Write", "", "The model goes on; press again to stop")] : []),
      ...(chats ? [this.button("Chat", "yes", "What follows the last message is yours; press again to stop")] : []),
    ];
  }

  button(label, chat, title) {
    const found = make("button", { type: "button", class: "prompt-write", title }, label);
    found.addEventListener("click", async () => {
      found.setAttribute("aria-pressed", String(!this.writing));
      await this.write(chat);
      if (!this.writing) found.setAttribute("aria-pressed", "false");
    });
    return found;
  }

  /** Let the model write a few tokens at a time, and look at the text after each. A second press stops it. */
  async write(chat) {
    if (this.writing) {
      this.writing = false;
      return;
    }
    this.writing = true;
    const { field } = this.prompt.first;
    await this.prompt.attempt(async () => {
      for (let step = 0; step < WRITINGS && this.writing; step++) {
        const grown = await (await asked("/writings", posted({ text: field.value, chat }))).json();
        field.value = grown.text;
        field.scrollTop = field.scrollHeight;
        await this.prompt.lookOnce({ text: grown.text });
        if (grown.ended) break;
      }
    });
    this.writing = false;
  }
}
