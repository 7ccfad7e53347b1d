// Legends that follow the zoom: while a diagram shows only a part, a column has the requests of each series in that part, or
// its lowest and highest value there.
"use strict";
iosonar.legend = (() => {
  const narrower = (axis, range) => range.low > axis.low || range.high < axis.high;

  // What a legend says of the visible part of each series, by its label.
  function texts(plot) {
    const found = new Map();
    for (const layer of plot.clouds)
      for (const { label, total, exact } of iosonar.clouds.visible(plot, layer)) found.set(label, `${exact ? "" : "≈ "}${iosonar.text("requests", total)}`);
    for (const layer of plot.curves) {
      const [low, high] = iosonar.layers.extent(layer, plot.xRange, -Infinity), said = (value) => iosonar.text(plot.y.unit, value);
      found.set(layer.label, low > high ? "–" : said(low) === said(high) ? said(low) : `${said(low)} – ${said(high)}`);
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
