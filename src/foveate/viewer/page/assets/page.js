// The page: what is open and chosen, navigation by address and keyboard, and announcements for screen readers.

class Page {
  constructor(source) {
    Object.assign(this, { source: new WithMeans(source), overview: null, head: null, query: null, key: null, hovered: null, view: null });
    this.alike = false;
    this.menu = new MeasureMenu(this);
    this.matches = new Map(); // of "query" and "key", or of each text of the overview: the places found
    this.kept = new Map();
    this.theme = new Theme(() => this.repaint());
    this.search = new Search(this);
    this.framed = window !== window.top;
    find("home").addEventListener("click", () => this.back());
    find("theme").addEventListener("click", () => this.theme.switch());
    find("ask").addEventListener("click", () => this.help());
    find("help-close").addEventListener("click", () => find("help").close());
    find("help").addEventListener("click", (event) => event.target === find("help") && find("help").close());
    find("each").addEventListener("click", () => this.compare(false));
    find("alike").addEventListener("click", () => this.compare(true));
    document.addEventListener("keydown", (event) => press(this, event));
    window.addEventListener("popstate", () => this.attempt(() => this.route()));
    this.wide = matchMedia(WIDE);
    this.wide.addEventListener("change", () => this.stage?.arrange());
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault(); // the fragment of the address names heads
      find("main").focus();
    });
    if (source.prompt) find("above").append(source.prompt);
  }

  /** Load the overview from the source and show it, at the start and whenever the source has something new. */
  async load() {
    await this.attempt(async () => {
      this.overview = await this.source.overview();
      this.kept.clear();
      this.forget();
      document.title = this.overview.title;
      this.table = new Overview(this);
      this.stage = new Stage(this);
      const before = { ...this };
      Object.assign(this, { head: null, query: null, key: null, hovered: null });
      this.menu.open(this.overview); // it draws anew, which what was shown before could not
      this.leave(); // what was open belongs to another input
      await this.route();
      chooseAgain(this, before);
      await openFirst(this);
    });
  }

  /** Run a task and show its error, if any. */
  async attempt(action) {
    try {
      return await action();
    } catch (error) {
      const message = make("p", { class: "message", role: "alert" }, error.message);
      this.forget();
      find("main").before(message);
      return null;
    }
  }

  /** Remove the error message. */
  forget() {
    document.querySelector(".message[role=alert]")?.remove();
  }

  /** The largest number of all maps. */
  get most() {
    return mostOf(this.overview);
  }

  /** What a map shows of a pair. */
  get word() {
    return MEASURES[this.overview.measure][1];
  }

  maps(site) {
    if (!this.kept.has(site)) {
      const asked = this.source.maps(site);
      this.kept.set(site, asked);
      asked.catch(() => this.kept.get(site) === asked && this.kept.delete(site)); // the next request may succeed
    }
    return this.kept.get(site);
  }

  /** Whether the model was run without a head, or without the weight of a pair in it. */
  removed(site, head, pair) {
    const { name } = this.overview.sites[site];
    return Boolean(this.source.removing?.has(name.split("#")[0], head, pair));
  }

  /** Whether the source can run the model without a head. */
  removable(site, head) {
    const info = this.overview.sites[site];
    return Boolean(this.source.removing?.possible()) && !info.rollout && head < info.heads;
  }

  /** Run the model without a head, or a pair of it, or with it again, where the source can: whether it can. */
  remove(site, head, pair, told) {
    if (!this.removable(site, head)) return false;
    this.source.removing.toggle(this.overview.sites[site].name.split("#")[0], head, pair, told);
    return true;
  }

  route() {
    return followAddress(this);
  }

  address(text) {
    if (this.framed) return; // a notebook has a single address
    if (location.hash !== text) history.pushState(null, "", text || location.pathname + location.search);
  }

  async open(site, head) {
    await this.attempt(async () => {
      head = clamp(head, 0, countMaps(this.overview.sites[site]) - 1);
      if (await this.enter(site, head)) this.address(linkOf(this.head));
    });
  }

  async enter(site, head) {
    const turn = (this.turn = {}); // only the last request is shown
    const maps = await this.maps(site);
    if (turn !== this.turn) return false;
    const before = this.head;
    this.head = new Head(this.source, this.overview, site, head, maps);
    this.head.arrived = () => this.arrived();
    if (this.query >= this.head.queries.count) this.query = null;
    if (this.key >= this.head.keys.count) this.key = null;
    this.hovered = null;
    tip(null);
    if (!before) {
      find("title").textContent = this.overview.title;
      find("main").replaceChildren(this.stage.element);
      document.body.classList.add("open");
      window.scrollTo(0, 0);
    }
    find("exactness").textContent = this.head.exactness;
    await this.head.want(0, this.source.ahead ?? this.head.queries.count);
    if (turn !== this.turn) return false;
    this.forget();
    this.search.show();
    this.stage.open(this.head, maps);
    const typing = find("above").contains(document.activeElement);
    if (!before && !typing) this.stage.element.focus({ preventScroll: true });
    this.say(`${titleOf(this.head.info)}, ${this.head.name}`);
    return true;
  }

  back() {
    if (!this.head) return;
    this.leave();
    this.address("");
  }

  leave() {
    const from = this.head;
    this.stage?.player.run(false);
    this.head = this.turn = null;
    this.forget();
    tip(null);
    document.body.classList.remove("open");
    find("title").textContent = "foveate";
    find("main").replaceChildren(this.table.element);
    find("exactness").textContent = "";
    this.table.paint();
    this.search.show();
    if (from) this.table.show(from.site, from.head);
  }

  /** Choose a query, a key, or both; null for none. `reveal` scrolls them into view. */
  choose(chosen, reveal = false) {
    Object.assign(this, chosen);
    if (reveal) this.stage.reveal(chosen.query ?? null, chosen.key ?? null);
    this.stage.update();
    this.sayChosen();
  }

  step(by) {
    const query = this.query === null ? (by > 0 ? 0 : this.head.queries.count - 1) : this.query + by;
    this.choose({ query: clamp(query, 0, this.head.queries.count - 1), key: null }, true);
  }

  show(view) {
    this.hover(null); // the pair under the pointer is that of the view before
    this.view = view;
    this.stage.arrange();
  }

  hover(at) {
    const same = at?.query === this.hovered?.query && at?.key === this.hovered?.key;
    if (!at) tip(null);
    if (same || !this.head) return;
    this.hovered = at;
    this.stage.update(false);
  }

  match(matches) {
    this.matches = matches;
    if (this.head) this.stage?.update(false);
    else if (this.table) markFound(this.table, matches);
  }

  /** The places of queries or keys that the search has found. */
  found(name) {
    return this.matches.get(name) ?? new Set();
  }

  compare(alike) {
    this.alike = alike;
    find("each").setAttribute("aria-pressed", String(!alike));
    find("alike").setAttribute("aria-pressed", String(alike));
    this.repaint();
  }

  repaint() {
    if (!this.table) return;
    this.table.paint();
    if (!this.head) return;
    this.stage.update();
    this.attempt(async () => this.stage.fillFilm(this.head, await this.maps(this.head.site)));
  }

  help() {
    find("help").showModal();
  }

  sayChosen() {
    if (this.query !== null || this.key !== null) this.say(this.head.told(this.query, this.key));
    this.head.awaited = this.query !== null && !this.head.row(this.query);
  }

  /** Rows are loaded: repeat the announcement that was waiting for them. */
  arrived() {
    this.stage.update();
    if (this.head?.awaited) this.sayChosen();
  }

  say(text) {
    find("said").textContent = text;
  }
}

/** Show the data of a source. */
function show(source) {
  const page = new Page(source);
  page.load().then(() => document.documentElement.setAttribute("data-ready", ""));
  return page;
}
