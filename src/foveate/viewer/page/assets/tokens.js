// A list of tokens of any length: only visible tokens have elements.

const ROW = 24; // height of a token in pixels

/** The queries or keys beside the lines: a box as high as all tokens, with elements for the visible ones. */
class TokenList {
  constructor(name, title, over, choose) {
    this.name = name;
    this.length = make("div", { class: "tokens-length", role: "presentation" });
    this.element = make(
      "div",
      { class: `tokens of-${name}`, role: "listbox", "aria-label": title, tabIndex: 0 },
      this.length,
    );
    const place = (event) => {
      const token = event.target.closest("[role=option]");
      return token ? Number(token.dataset.place) : null;
    };
    this.element.addEventListener("click", (event) => place(event) !== null && choose(place(event)));
    this.element.addEventListener("pointerover", (event) => place(event) !== null && over({ [name]: place(event) }));
    this.element.addEventListener("pointerleave", () => over(null));
    this.before = 0;
  }

  open(side) {
    this.side = side;
    this.length.style.height = `${side.count * ROW}px`;
    this.before = this.element.scrollTop;
  }

  /** Scroll to an offset, without notifying the other list. */
  move(offset) {
    this.element.scrollTop = offset;
    this.before = this.element.scrollTop;
  }

  reveal(place) {
    const { from, to } = this.sight;
    if (place <= from || place >= to - 1) this.move((place + 0.5) * ROW - this.element.clientHeight / 2);
  }

  get sight() {
    const { scrollTop, clientHeight } = this.element;
    const from = Math.floor(scrollTop / ROW);
    return { from, to: Math.min(this.side.count, Math.ceil((scrollTop + clientHeight) / ROW)) };
  }

  /** The middle of a token, relative to the top of the visible part. */
  middle(place) {
    return (place + 0.5) * ROW - this.element.scrollTop;
  }

  /** Update the visible tokens, with the style from `look`. Elements are reused, since one may be clicked right now. */
  paint(look, chosen) {
    const { from, to } = this.sight;
    while (this.length.childElementCount > to - from) this.length.lastElementChild.remove();
    while (this.length.childElementCount < to - from) {
      this.length.append(
        make(
          "div",
          { role: "option", class: "token" },
          make("bdi", { class: "text" }),
          make("span", { class: "place" }),
        ),
      );
    }
    for (let place = from; place < to; place++) {
      const token = this.length.children[place - from];
      const { found, over, share, told } = look(place);
      token.dataset.place = place;
      token.id = `${this.name}-${place}`;
      token.style.transform = `translateY(${place * ROW}px)`;
      token.setAttribute("aria-selected", String(chosen === place));
      token.classList.toggle("found", found);
      token.classList.toggle("over", over);
      token.classList.toggle("looked", share !== undefined);
      if (share !== undefined) token.style.setProperty("--share", `${Math.round(8 + 92 * share)}%`);
      token.firstChild.textContent = cut(this.side.short(place), 40);
      token.lastChild.textContent = told;
    }
    if (chosen !== null && chosen >= from && chosen < to)
      this.element.setAttribute("aria-activedescendant", `${this.name}-${chosen}`);
    else this.element.removeAttribute("aria-activedescendant");
  }
}
