// What can be taken away from an open head: a link to it, its picture, its weights.

/** The fragment of the address of a head, such as "#3/5" or, for the mean of the heads of site 3, "#3/mean". */
const linkOf = ({ site, head, info }) => `#${site}/${isMean(info, head) ? "mean" : head}`;

/** The fragment of the address of what is open: "#3/5?query=2&key=7&view=lines&scale=all", and for a zoomed map
    "zoom=4_10_20_0" with its zoom, first query and key, and inset, "part=AB" for a part, "over=2" for each head drawn over it,
    "beside=3_1" for the head beside it, "measure=values" for what maps show. */
function linkTo({ head, query, key, stage, view, alike, overview }) {
  const kept = new URLSearchParams();
  if (query !== null) kept.set("query", query);
  if (key !== null) kept.set("key", key);
  if (view ?? stage.names.includes("picture")) kept.set("view", stage.chosen);
  if (alike) kept.set("scale", "all");
  if (overview.measure !== overview.measures[0]) kept.set("measure", overview.measure);
  const { camera } = stage.views.map;
  if (camera?.zoom > 1 && stage.shown.includes("map"))
    kept.set("zoom", [camera.zoom, camera.top, camera.left, camera.inset].map((number) => Number(number.toFixed(3))).join("_"));
  if (stage.parts.chosen) kept.set("part", stage.parts.chosen);
  for (const number of stage.layers.others.keys()) kept.append("over", number);
  const { beside } = stage;
  if (beside.on && beside.head) kept.set("beside", `${beside.head.site}_${beside.head.head}`);
  const text = kept.toString();
  return `${linkOf(head)}${text && `?${text}`}`;
}

/** The parts of such a fragment; null if it is none. */
function parseLink(fragment) {
  const [, site, head, rest = ""] = /^#(\d+)\/(\d+|mean)(?:\?(.*))?$/.exec(fragment) ?? [];
  if (site === undefined) return null;
  const kept = new URLSearchParams(rest);
  const place = (name) => (/^\d+$/.test(kept.get(name) ?? "") ? Number(kept.get(name)) : null);
  const [view, alike] = [kept.get("view"), kept.get("scale") === "all"];
  const named = { site: Number(site), head: head === "mean" ? head : Number(head) };
  const zoom = (kept.get("zoom") ?? "").split("_").map(Number);
  named.zoom = zoom.length === 4 && zoom.every((number) => number >= 0) && zoom[0] >= 1 ? zoom : null;
  const beside = (/^\d+_\d+$/.exec(kept.get("beside") ?? "")?.[0] ?? "").split("_").filter(Boolean).map(Number);
  const over = kept.getAll("over").map(Number);
  return { ...named, query: place("query"), key: place("key"), view, alike, part: kept.get("part") ?? "", measure: kept.get("measure"), over, beside };
}

/** Show the token, the view and the scale of a link to the open head. */
function applyLink(page, { query, key, view, alike, part, over, zoom, beside }) {
  if (view !== null && page.stage.names.includes(view)) page.show(view);
  if (alike) page.compare(true);
  if (part) page.stage.parts.choose(part);
  if (page.overview.sites[beside[0]]) page.stage.beside.put(...beside);
  const others = over.filter((number) => number < countMaps(page.head.info));
  if (others.length) page.stage.layers.switch(true);
  for (const number of others) page.stage.layers.toggle(number);
  const fits = (place, side) => (place !== null && place < side.count ? place : null);
  const chosen = { query: fits(query, page.head.queries), key: fits(key, page.head.keys) };
  if (chosen.query !== null || chosen.key !== null) page.choose(chosen, true);
  if (zoom && page.stage.shown.includes("map")) {
    page.stage.views.map.camera.restore(...zoom);
    page.stage.views.map.changed();
  }
}

/** The buttons of an open head. */
function headTools(page) {
  const button = (name, title, action) => {
    const made = make("button", { type: "button", class: "tool", title }, name);
    const done = (told) => {
      made.textContent = told;
      page.say(told);
      setTimeout(() => (made.textContent = name), 1500);
    };
    made.addEventListener("click", () => page.attempt(() => action(done)));
    return made;
  };
  return make(
    "div",
    { class: "head-tools", role: "group", "aria-label": "Take away" },
    button("Copy link", "A link to this head, token, view and zoom", (done) => copyLink(page, done)),
    button("PNG", "The map as a picture", () => savePicture(page)),
    button("CSV", "The weights of this head as a table", () => saveTable(page.head)),
  );
}

async function copyLink(page, done) {
  history.replaceState(null, "", linkTo(page));
  try {
    await navigator.clipboard.writeText(location.href);
    done("Copied");
  } catch {
    done("It is in the address bar"); // not every browser lets a page write to the clipboard
  }
}

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name.replace(/[^\w.-]+/g, "_") }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const nameOf = ({ info, name }) => `${info.name}-${name.replaceAll(" ", "-")}`;

/** Save the map as it is drawn, with the name of the head above and the range of its colours below. */
async function savePicture(page) {
  if (!page.stage.shown.includes("map")) page.show("map");
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  const { map } = page.stage.views;
  const ratio = window.devicePixelRatio || 1;
  const line = Math.round(28 * ratio);
  const picture = make("canvas", { width: map.canvas.width, height: map.canvas.height + 2 * line });
  const context = picture.getContext("2d");
  context.fillStyle = page.theme.surface;
  context.fillRect(0, 0, picture.width, picture.height);
  context.drawImage(map.canvas, 0, line);
  context.fillStyle = page.theme.text;
  context.font = `${Math.round(13 * ratio)}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.fillText(`${titleOf(page.head.info)}, ${page.head.name}`, 10 * ratio, line / 2);
  const told = `0 to ${brief(map.brightest)}, by the square root`;
  context.fillText(told, 130 * ratio, picture.height - line / 2);
  page.theme.scale.css.forEach((colour, step, { length }) => {
    context.fillStyle = colour;
    const [from, to] = [step, step + 1].map((place) => Math.round((10 + (110 * place) / length) * ratio));
    context.fillRect(from, picture.height - line / 2 - 5 * ratio, to - from, 10 * ratio);
  });
  const blob = await new Promise((resolve) => picture.toBlob(resolve));
  download(blob, `${nameOf(page.head)}.png`);
}

/** Save the weights that are known: a line for each pair, in the order of queries and keys. */
async function saveTable(head) {
  await head.want(0, head.queries.count);
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const lines = ["query,query_token,key,key_token,weight"];
  for (let query = 0; query < head.queries.count; query++) {
    const row = head.row(query);
    row?.keys.forEach((key, place) => {
      if (key < 0) return;
      const [from, to] = [quoted(head.queries.label(query)), quoted(head.keys.label(key))];
      lines.push(`${query},${from},${key},${to},${Number(row.weights[place].toPrecision(5))}`);
    });
  }
  const name = head.complete ? nameOf(head) : `${nameOf(head)}-top-${head.kept}`;
  download(new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }), `${name}.csv`);
}

/** Show what the address names, as `linkTo` writes it: "#3/5" is head 5 of site 3. */
async function followAddress(page) {
  if (!page.overview) return;
  const link = parseLink(location.hash);
  const { sites, measures, measure } = page.overview;
  if (measures.includes(link?.measure) && link.measure !== measure) {
    await page.menu.choose(link.measure);
    return;
  }
  const info = link && sites[link.site];
  const head = info && link.head === "mean" ? info.heads : link?.head;
  if (!info || !(head < countMaps(info))) page.leave();
  else if (await page.enter(link.site, head)) applyLink(page, link);
}

/** Open what the page opens with, or the head of a page that has no other. */
async function openFirst(page) {
  const { sites, opening } = page.overview;
  if (location.hash) return;
  const place = sites.findIndex(({ name }) => name === opening?.site);
  if (place >= 0) {
    page.query = opening.query;
    await page.enter(place, countMaps(sites[place]) - 1);
  } else if (sites.length === 1 && sites[0].heads === 1) await page.enter(0, 0);
}

/** Choose what was chosen before a new look, if the same head is open and the places have the same names. */
function chooseAgain(page, { head, query, key }) {
  const now = page.head;
  if (!head || now?.name !== head.name || now.site !== head.site) return;
  const same = (side, place) => place === null || (place < now[side].count && now[side].label(place) === head[side].label(place));
  if (same("queries", query) && same("keys", key)) page.choose({ query, key });
}
