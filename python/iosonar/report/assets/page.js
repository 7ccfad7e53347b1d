// The page: draws each plot when it comes near the window, shows values under a cursor that plots over time share, hides series.
//
// For tests and scripts: `iosonar.plots` has each plot by its name, with axes x and y, xRange and yRange ({low, high}), layers,
// and after it is drawn its frame in pixels of `host` and the image of each cloud. `iosonar.settled(name)` draws it at once if
// anything of it waits to be drawn, and returns it. The attribute `data-ready` of <html> says that the window's plots are drawn.
"use strict";
(() => {
  const about = JSON.parse(document.getElementById("about").textContent);
  const tip = document.getElementById("tip"), root = document.documentElement;
  const plots = new Map(), ranges = new Map(), near = new Set(), waiting = new Set();
  const PRINTED = 680; // pixels of a plot on paper, as in page.css
  let cursor = null; // seconds; the cursor of all plots over time
  let frame = 0, printing = false;

  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  iosonar.colours = () => about.palettes[dark() && !printing ? "dark" : "light"];
  iosonar.plots = plots;
  iosonar.settled = (name) => { const plot = plots.get(name); if (plot.stale) plot.draw(); return plot; };
  iosonar.later = (plot) => { waiting.add(plot); frame ||= requestAnimationFrame(redraw); };

  function redraw() {
    frame = 0;
    for (const plot of waiting) if (plot.stale && plot.ready && near.has(plot)) plot.draw();
    waiting.clear();
    again();
  }

  async function start() {
    for (const described of about.figures) prepare(described);
    const all = [...plots.values()], first = all.filter(({ host }) => {
      const { top, bottom } = host.getBoundingClientRect();
      return top < innerHeight && bottom > 0;
    });
    await Promise.all(first.map((plot) => plot.unpack()));
    for (const plot of first) { near.add(plot); plot.draw(); }
    await Promise.all(all.map((plot) => plot.unpack()));
    const seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const plot = plots.get(target.dataset.name);
        if (isIntersecting) near.add(plot); else near.delete(plot);
        if (isIntersecting && plot.stale) plot.draw();
      }
    }, { rootMargin: "600px 0px" });
    const sized = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        const plot = plots.get(target.dataset.name);
        if (!printing && target.clientWidth !== plot.size?.width) plot.changed();
      }
    });
    for (const { host } of all) { seen.observe(host); sized.observe(host); }
    for (const link of document.querySelectorAll("a[data-from]")) {
      const plot = plots.get(link.dataset.figure);
      if (plot.timed) link.addEventListener("click", () => plot.choose({ x: { low: Number(link.dataset.from), high: Number(link.dataset.to) } }));
    }
    root.dataset.ready = "yes";
    frames(2).then(() => { drawn = true; });
  }

  // The load event waits for the first drawing, so that a screenshot or a print at that event has all of it: an image that is
  // still loading delays the event, so each one is followed by another.
  let drawn = !about.figures.length;
  const PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";
  function hold() {
    if (drawn || performance.now() > 60_000) return;
    const image = new Image();
    image.onload = image.onerror = hold;
    image.src = PIXEL;
  }

  // After so many frames; a page in the background has none.
  const frames = (n) => n ? Promise.race([new Promise(requestAnimationFrame), new Promise((done) => setTimeout(done, 200))]).then(() => frames(n - 1)) : Promise.resolve();

  function prepare(described) {
    const box = document.getElementById(`figure-${described.name}`), host = box.querySelector(".plot");
    const plot = new iosonar.Plot(described, host, ranges);
    Object.assign(plot, { box, stale: true, line: host.querySelector(".cursor") });
    host.dataset.name = plot.name;
    plots.set(plot.name, plot);
    iosonar.zoom.attach(plot);
    for (const input of box.querySelectorAll("input[data-series]")) {
      // A browser may keep a checkbox when it loads the page again.
      if (!input.checked) plot.hidden.add(input.dataset.series);
      input.addEventListener("change", () => plot.toggle(input.dataset.series, input.checked));
    }
    host.addEventListener("pointermove", (event) => event.buttons ? leave() : hover(plot, event));
    host.addEventListener("pointerleave", leave);
  }

  function between({ log }, { low, high }, share) { return log ? low * (high / low) ** share : low + (high - low) * share; }

  // A value of an axis; up to its floor, with all values below the axis.
  function said({ unit, floor, long }, value, n) {
    if (long) return iosonar.clock(value);
    return floor && value > 0 && value <= floor * (1 + 1e-6) ? `≤ ${iosonar.text(unit, floor)}` : iosonar.text(unit, value, n);
  }

  // The tip is valid for the element under the pointer: request it again when that moves.
  let last = null;
  function again() { if (last && !tip.hidden) { cursor = undefined; hover(...last); } }

  function hover(plot, event) {
    if (!plot.frame) return;
    last = [plot, event];
    const edge = plot.host.getBoundingClientRect(), { left, top, width, height } = plot.frame;
    const sx = (event.clientX - edge.left - left) / width, sy = 1 - (event.clientY - edge.top - top) / height;
    if (sx < 0 || sx > 1 || sy < 0 || sy > 1) { leave(); return; }
    const at = { x: between(plot.x, plot.xRange, sx), y: between(plot.y, plot.yRange, sy) };
    point(plot.timed ? at.x : null);
    const rows = [];
    // Values below an axis are at its lower end; dots there are some pixels high.
    const reach = { x: between(plot.x, plot.xRange, sx - 5 / width), y: between(plot.y, plot.yRange, sy - 5 / height) };
    const under = (axis, n) => said(plot[axis], plot.clouds.length && reach[axis] <= plot[axis].low && plot[axis].floor ? plot[axis].low : at[axis], n);
    for (const layer of plot.clouds)
      for (const found of iosonar.clouds.near(plot, layer, at))
        if (found.total) rows.push([found.role, found.label, iosonar.text("requests", found.total)]);
    for (const { layer, value } of values(plot, at.x)) rows.push([layer.role, layer.label, said(plot.y, value)]);
    const head = plot.clouds.length && plot.y.unit !== "devices" ? `${under("x", 5)} · ${under("y")}` : under("x", 5);
    tip.replaceChildren(element("b", head), ...rows.map(([role, label, text]) => {
      const row = element("div");
      const swatch = element("i"); swatch.style.background = `var(--role-${role.replaceAll(" ", "-")})`;
      row.append(swatch, element("span", label), element("em", text));
      return row;
    }));
    if (plot.clouds.length && !rows.length) tip.append(element("div", "nothing near"));
    tip.hidden = false;
    const right = event.clientX + 18 + tip.offsetWidth > innerWidth;
    tip.style.left = `${right ? event.clientX - 14 - tip.offsetWidth : event.clientX + 18}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  function element(name, text = "") { const made = document.createElement(name); made.textContent = text; return made; }

  function leave() { tip.hidden = true; point(null); }

  // The value of each visible line and step at x.
  const values = (plot, x) => plot.seen().map((layer) => ({ layer, value: iosonar.layers.value(layer, x) })).filter(({ value }) => isFinite(value));

  // The cursor of all plots over time, with the values under it in the legends.
  function point(at) {
    if (at === cursor) return;
    cursor = at;
    for (const plot of plots.values()) {
      if (!plot.timed || !plot.frame) continue;
      const { line, box, xRange: { low, high }, frame: { left, top, width, height } } = plot;
      const place = at === null ? null : box.getBoundingClientRect(), seen = place && place.bottom > 0 && place.top < innerHeight;
      line.hidden = !seen || at < low || at > high;
      if (!line.hidden) Object.assign(line.style, { left: `${left + width * (at - low) / (high - low)}px`, top: `${top}px`, height: `${height}px` });
      if (!seen && at !== null) continue;
      const here = new Map(at === null ? [] : values(plot, at).map(({ layer, value }) => [layer.label, said(plot.y, value)]));
      for (const cell of box.querySelectorAll("[data-here]")) cell.textContent = here.get(cell.dataset.here) ?? "";
    }
  }

  function recolour() { for (const plot of plots.values()) if (near.has(plot) && plot.ready) plot.draw(); else plot.stale = true; }

  addEventListener("scroll", leave, { passive: true });
  let dots = devicePixelRatio;
  addEventListener("resize", () => { if (dots !== devicePixelRatio) { dots = devicePixelRatio; recolour(); } });
  addEventListener("beforeprint", () => {
    printing = true;
    leave();
    for (const plot of plots.values()) if (plot.ready) plot.draw(2, PRINTED);
  });
  addEventListener("afterprint", () => { printing = false; recolour(); });
  document.getElementById("theme").addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; recolour(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  hold();
  if (about.figures.length) start(); else root.dataset.ready = "yes";
})();
