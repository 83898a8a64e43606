// Ways from an open head to what is next to it.

/** The next key with weight of the query. */
function stepKey(page, by) {
  if (page.query === null) return page.step(1);
  const keys = page.head
    .top(page.query)
    .map(({ key }) => key)
    .sort((one, other) => one - other);
  const after = keys.filter((key) => (by > 0 ? key > (page.key ?? -1) : key < (page.key ?? Infinity)));
  if (after.length) page.choose({ key: by > 0 ? after[0] : after[after.length - 1] }, true);
  return undefined;
}

function stepHead(page, by) {
  const head = page.head.head + by;
  if (head >= 0 && head < countMaps(page.head.info)) page.open(page.head.site, head);
}

/** The same head of the next layer in the stack. */
function stepLayer(page, by) {
  const { sites } = page.overview;
  const stack = sites.map((_, place) => place).filter((place) => sites[place].group === page.head.info.group);
  const site = stack[stack.indexOf(page.head.site) + by];
  if (site !== undefined) page.open(site, page.head.head);
}
