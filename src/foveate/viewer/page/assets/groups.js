// The groups of the overview: the sites of a stack below each other, and few heads with their tokens.

const FEW_HEADS = 2; // heads of a page that are drawn large, with their tokens

const MOST_NAMED = 40; // of a side, whose names are legible beside a map

/** The name and the sites of each group. Attention from one side to another comes first, as that of an answer to what was
    read, then self-attention, then rollouts. */
function groupsOf({ sites }) {
  const groups = new Map();
  sites.forEach(({ group }, place) => groups.set(group, [...(groups.get(group) ?? []), place]));
  const rank = ([, [place]]) => (sites[place].rollout ? 2 : Number(sites[place].queries === sites[place].keys));
  return [...groups].sort((one, other) => rank(one) - rank(other));
}

/** A small map, with the tokens of its sides where a page has so few heads that there is room. */
function withTokens({ sites, sides }, site, thumb) {
  const heads = sites.reduce((sum, each) => sum + (each.rollout ? 0 : each.heads), 0);
  const both = [site.keys, site.queries].map((side) => new Side(sides[side]));
  if (heads > FEW_HEADS || !both.every((side) => side.told && side.count <= MOST_NAMED)) return thumb;
  const lists = both.map((side, number) => {
    const tokens = Array.from({ length: side.count }, (_, place) => make("bdi", {}, cut(side.label(place), 12)));
    return make("span", { class: number ? "queries" : "keys", "aria-hidden": "true" }, ...tokens);
  });
  return make("div", { class: "thumb-tokens" }, ...lists, thumb);
}
