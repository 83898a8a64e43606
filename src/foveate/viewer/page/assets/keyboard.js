// Keyboard shortcuts.

/** Handle a key outside of text fields; Escape also works inside the fields of an open head. */
function press(page, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || find("help").open || !page.overview) return;
  const field = event.target.closest("input, select, textarea");
  if (field && !(event.key === "Escape" && field.closest(".stage"))) return;
  if (event.key === " " && event.target.closest("button, a, summary")) return; // it presses the button
  const everywhere = { t: () => page.theme.switch(), "?": () => page.help() };
  const opened = {
    ArrowUp: () => (event.shiftKey ? stepLayer(page, -1) : page.step(-1)),
    ArrowDown: () => (event.shiftKey ? stepLayer(page, 1) : page.step(1)),
    ArrowLeft: () => (event.shiftKey ? stepKey(page, -1) : stepHead(page, -1)),
    ArrowRight: () => (event.shiftKey ? stepKey(page, 1) : stepHead(page, 1)),
    Escape: () => page.back(),
    p: () => page.stage.player.run(!page.stage.player.playing),
    " ": () => page.stage.player.run(!page.stage.player.playing),
    "+": () => page.stage.views.map.zoom(1.6),
    "=": () => page.stage.views.map.zoom(1.6),
    "-": () => page.stage.views.map.zoom(1 / 1.6),
    0: () => page.stage.views.map.zoom(0),
  };
  if (event.key === "/" && !find("search").hidden) {
    event.preventDefault();
    page.search.focus();
    return;
  }
  const view = page.head && page.stage.names[Number(event.key) - 1];
  const action = everywhere[event.key] ?? (page.head ? (opened[event.key] ?? (view && (() => page.show(view)))) : null);
  if (!action) {
    const arrow = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"].includes(event.key);
    if (arrow && !page.head && event.target === document.body) page.table.focus(page.table.first());
    return;
  }
  event.preventDefault();
  action();
}
