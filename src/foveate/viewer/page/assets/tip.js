// The tooltip beside the pointer: lines of text, mostly about a pair of tokens.

/** Show lines of text beside a point of an element, each with its kind and a value; null hides them. */
function tip(lines, element, x, y) {
  const shown = find("tip");
  shown.hidden = !lines;
  if (!lines) return;
  const line = ([kind, text, beside = ""]) => {
    return make(
      "div",
      { class: `tip-${kind}` },
      make("bdi", {}, cut(text, 60)),
      make("span", { class: "muted" }, beside),
    );
  };
  shown.replaceChildren(...lines.map(line));
  const box = element.getBoundingClientRect();
  const [wide, high] = [shown.offsetWidth, shown.offsetHeight];
  const right = box.left + x + 16 + wide < document.documentElement.clientWidth;
  const below = box.top + y + 16 + high < window.innerHeight;
  shown.style.left = `${Math.max(8, box.left + x + (right ? 16 : -16 - wide))}px`;
  shown.style.top = `${Math.max(8, box.top + y + (below ? 16 : -16 - high))}px`;
}

/** The lines for a pair of tokens. */
function pairTold(head, query, key) {
  const known = head.weight(query, key);
  const row = head.row(query);
  const lines = [
    ["query", head.queries.label(query), head.queries.told ? `query ${count(query)}` : "query"],
    ["key", head.keys.label(key), head.keys.told ? `key ${count(key)}` : "key"],
    [known ? "number" : "muted", head.figures(query, key)],
  ];
  if (known?.below !== undefined) lines.push(["muted", `not among the top ${head.kept} of its row`]);
  if (row && !head.complete) lines.push(["muted", `all keys but the top ${head.kept}: ${figures(row.rest)}`]);
  return lines;
}

/** The lines for a cell of a map; a pair of tokens if it has one query and one key. */
function cellTold(head, { rows, columns, value }) {
  if (rows[1] - rows[0] === 1 && columns[1] - columns[0] === 1) return pairTold(head, rows[0], columns[0]);
  const told = (one, several, [from, to]) => (to - from === 1 ? `${one} ${from}` : `${several} ${from} to ${to - 1}`);
  return [
    ["query", told("query", "queries", rows)],
    ["key", told("key", "keys", columns)],
    ["plain", `together ${figures(value)}, as the mean of the queries`],
    ["muted", "zoom in for single weights"],
  ];
}
