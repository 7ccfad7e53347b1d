// Legends that follow the zoom: while a diagram shows only a part, a column has the requests of each series in that part, or
// its lowest and highest value there.
"use strict";
iosonar.legend = (() => {
  const narrower = (axis, range) => range.low > axis.low || range.high < axis.high;

  // Two values, with their unit once if both have it.
  function between(low, high) {
    const space = low.indexOf(" "), unit = space < 0 ? "" : low.slice(space);
    return low === high ? low : `${unit && high.endsWith(unit) ? low.slice(0, space) : low} – ${high}`;
  }

  // What a legend says of the visible part of each series, by its label.
  function texts(plot) {
    const found = new Map();
    for (const layer of plot.clouds)
      for (const { label, total, exact } of iosonar.clouds.visible(plot, layer)) found.set(label, `${exact ? "" : "≈ "}${iosonar.text("requests", total)}`);
    for (const layer of plot.curves) {
      const [low, high] = iosonar.layers.extent(layer, plot.xRange, -Infinity);
      found.set(layer.label, low > high ? "–" : between(iosonar.text(plot.y.unit, low), iosonar.text(plot.y.unit, high)));
    }
    return found;
  }

  function follow(plot) {
    const isPart = narrower(plot.x, plot.xRange) || plot.clouds.length > 0 && narrower(plot.y, plot.yRange);
    const cells = plot.box.querySelectorAll(".legend .seen");
    if (!cells.length || !isPart && cells[0].hidden) return;
    const found = isPart ? texts(plot) : null;
    for (const cell of cells) {
      cell.hidden = !isPart;
      if (isPart && "seen" in cell.dataset) cell.textContent = found.get(cell.dataset.seen) ?? "";
    }
  }
  return { follow };
})();
