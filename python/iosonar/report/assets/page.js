// Makes the plots interactive: series toggles, a cursor shared by all plots over time with values under it, keys.
"use strict";
(() => {
  const about = JSON.parse(document.getElementById("about").textContent);
  iosonar.ndarray = (array, h, w) => Bokeh.require("core/util/ndarray").ndarray(array, { dtype: "uint32", shape: [h, w] });
  const tip = document.getElementById("tip"), root = document.documentElement;
  const figures = new Map();
  let cursor = null; // seconds; the cursor of all plots over time

  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const palette = () => about.palettes[dark() ? "dark" : "light"];
  const find = (name) => Bokeh.documents[0].get_model_by_name(name);

  function start() {
    for (const described of about.figures) prepare(described);
    for (const figure of figures.values()) place(figure);
    recolour();
    Promise.all([...figures.values()].flatMap((figure) => figure.clouds.flatMap((layer) => layer.parts.flatMap((part) => part.levels.map(async (level) => {
      Object.assign(level, await iosonar.clouds.unpack(level.cells));
      delete level.cells;
    }))))).then(() => {
      for (const figure of figures.values()) { figure.ready = true; repaint(figure); }
      root.dataset.ready = "yes";
      frames(3).then(() => { drawn = true; });
    });
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
    const plot = find(described.name), box = document.getElementById(`figure-${described.name}`);
    const figure = { ...described, plot, box, hidden: new Set(), ready: false, timer: 0 };
    figure.clouds = figure.layers.filter((layer) => layer.kind === "cloud");
    for (const layer of figure.clouds) layer.source = find(layer.models[0]);
    figure.width = () => Math.max(plot.inner_width || 0, 50);
    figure.height = () => Math.max(plot.inner_height || 0, 50);
    figure.home = [plot.x_range.start, plot.x_range.end, plot.y_range.start, plot.y_range.end];
    figure.cursor = null;
    figures.set(figure.name, figure);
    // Fewer ticks on a narrow plot; Bokeh draws up to half as many again.
    const { ticker } = plot.below[0], wanted = ticker.desired_num_ticks;
    figure.thin = () => { if (wanted) ticker.desired_num_ticks = Math.max(Math.min(wanted, Math.floor(figure.width() / 110)), 2); };
    figure.thin();
    const later = () => { clearTimeout(figure.timer); figure.timer = setTimeout(() => { fit(figure); place(figure); repaint(figure); again(); }, 40); };
    // A y range chosen by the reader stays; one chosen by this script follows the visible data.
    for (const end of ["start", "end"])
      plot.y_range.properties[end].change.connect(() => { if (!figure.fitting) figure.held = !at_home(figure); });
    for (const [model, property] of [[plot.x_range, "start"], [plot.x_range, "end"], [plot.y_range, "start"], [plot.y_range, "end"], [plot, "inner_width"], [plot, "inner_height"]])
      model.properties[property].change.connect(later);
    plot.properties.inner_width.change.connect(figure.thin);
    for (const input of box.querySelectorAll("input[data-series]"))
      input.addEventListener("change", () => toggle(figure, input.dataset.series, input.checked));
    const area = box.querySelector(".plot");
    area.addEventListener("pointermove", (event) => hover(figure, event));
    area.addEventListener("pointerleave", () => leave());
    area.addEventListener("dblclick", () => home(figure));
    area.addEventListener("keydown", (event) => key(figure, event));
  }

  // Names of vertical rules are above the frame, in two lines, each where it overlaps no other; none outside the range.
  function place(figure) {
    const rules = figure.layers.filter((layer) => layer.kind === "rule" && "at" in layer);
    if (!rules.length) return;
    const { start, end } = figure.plot.x_range, area = frame(figure), width = area.width, taken = [[], []];
    const host = figure.box.querySelector(".plot"), edge = host.getBoundingClientRect();
    for (const layer of rules) {
      const share = figure.x.log ? Math.log(layer.at / start) / Math.log(end / start) : (layer.at - start) / (end - start);
      layer.name ??= host.appendChild(element("span", layer.label));
      const own = iosonar.width(layer.label), at = share * width, left = Math.max(Math.min(at - own / 2, width - own), 0);
      const row = taken.findIndex((line) => line.every(([from, to]) => left > to + 6 || left + own + 6 < from));
      layer.name.className = "rule-name";
      layer.name.style.color = `var(--role-${layer.role.replaceAll(" ", "-")})`;
      layer.name.hidden = !(share >= 0 && share <= 1 && row >= 0);
      if (layer.name.hidden) continue;
      taken[row].push([left, left + own]);
      layer.name.style.left = `${area.left - edge.left + left}px`;
      layer.name.style.top = `${area.top - edge.top - 16 - 15 * row}px`;
    }
  }

  const at_home = ({ plot: { y_range }, home: [, , y0, y1] }) => y_range.start === y0 && y_range.end === y1;

  // Fits the y range of a diagram over time to the visible data when a linked diagram moves.
  function fit(figure) {
    if (figure.x.unit !== "time" || figure.clouds.length || figure.held) return;
    const { x_range: x, y_range: y } = figure.plot, [x0, x1, y0, y1] = figure.home, log = figure.y.log;
    let low = Infinity, high = -Infinity;
    for (const layer of figure.layers) {
      if (layer.kind !== "line" && layer.kind !== "steps" || figure.hidden.has(layer.label)) continue;
      for (const name of layer.models) {
        if (name.endsWith(".area")) continue;
        const { x: xs, y: ys } = find(name).data_source.data;
        for (let i = 0; i < xs.length; i++) {
          // Include lines that only cross the range.
          const seen = xs[i] >= x.start && xs[i] <= x.end || i + 1 < xs.length && xs[i] < x.start && xs[i + 1] > x.end;
          if (!seen || !isFinite(ys[i]) || log && ys[i] < figure.y.low) continue;
          low = Math.min(low, ys[i]); high = Math.max(high, ys[i]);
        }
      }
    }
    const whole = x.start <= x0 && x.end >= x1 && !figure.hidden.size;
    const [start, end] = whole || high === -Infinity ? [y0, y1] : log ? [low / 1.3, high * 1.3] : [Math.min(y0, low), high > 0 ? high * 1.06 : y1];
    figure.fitting = true;
    y.setv({ start, end });
    figure.fitting = false;
  }

  function repaint(figure) {
    if (figure.ready) for (const layer of figure.clouds) iosonar.clouds.paint(figure, layer, palette(), figure.hidden);
  }

  function toggle(figure, label, shown) {
    if (shown) figure.hidden.delete(label); else figure.hidden.add(label);
    for (const layer of figure.layers)
      if (layer.label === label) for (const name of layer.models) find(name).visible = shown;
    fit(figure);
    repaint(figure);
  }

  // The position of the plot's frame in the page.
  function frame(figure) {
    const view = Bokeh.index.find_one(figure.plot), canvas = view.canvas_view?.el ?? view.el, box = canvas.getBoundingClientRect();
    const inner = view.frame.bbox;
    return { left: box.left + inner.left, top: box.top + inner.top, width: inner.width, height: inner.height };
  }

  function between(start, end, share, log) {
    return log ? start * (end / start) ** share : start + (end - start) * share;
  }

  // A value of an axis; up to its floor, with all values below the axis.
  function said({ unit, floor, long }, value, n) {
    if (long) return iosonar.clock(value);
    return floor && value > 0 && value <= floor * (1 + 1e-6) ? `≤ ${iosonar.text(unit, floor)}` : iosonar.text(unit, value, n);
  }

  // The tip is valid for the element under the pointer: request it again when that moves.
  let last = null;
  function again() { if (last && !tip.hidden) { cursor = undefined; hover(...last); } }

  function hover(figure, event) {
    last = [figure, event];
    const area = frame(figure), { x_range, y_range } = figure.plot;
    const sx = (event.clientX - area.left) / area.width, sy = 1 - (event.clientY - area.top) / area.height;
    if (sx < 0 || sx > 1 || sy < 0 || sy > 1) { leave(); return; }
    const at = { x: between(x_range.start, x_range.end, sx, figure.x.log), y: between(y_range.start, y_range.end, sy, figure.y.log) };
    point(figure.x.unit === "time" ? at.x : null);
    const rows = [];
    // Values below an axis are at its lower end; dots there are some pixels high.
    const reach = { x: between(x_range.start, x_range.end, sx - 5 / area.width, figure.x.log), y: between(y_range.start, y_range.end, sy - 5 / area.height, figure.y.log) };
    const under = (axis, n) => said(figure[axis], figure.clouds.length && reach[axis] <= figure[axis].low && figure[axis].floor ? figure[axis].low : at[axis], n);
    for (const layer of figure.clouds)
      if (figure.ready) for (const found of iosonar.clouds.near(figure, layer, at, figure.hidden))
        if (found.total) rows.push([found.role, found.label, iosonar.text("requests", found.total)]);
    for (const { layer, value } of values(figure, at.x)) rows.push([layer.role, layer.label, said(figure.y, value)]);
    const head = figure.clouds.length && figure.y.unit !== "devices" ? `${under("x", 5)} · ${under("y")}` : under("x", 5);
    tip.replaceChildren(element("b", head), ...rows.map(([role, label, text]) => {
      const row = element("div");
      const swatch = element("i"); swatch.style.background = `var(--role-${role.replaceAll(" ", "-")})`;
      row.append(swatch, element("span", label), element("em", text));
      return row;
    }));
    if (figure.clouds.length && !rows.length) tip.append(element("div", "nothing near"));
    tip.hidden = false;
    const right = event.clientX + 18 + tip.offsetWidth > innerWidth;
    tip.style.left = `${right ? event.clientX - 14 - tip.offsetWidth : event.clientX + 18}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  function element(name, text = "") { const made = document.createElement(name); made.textContent = text; return made; }

  function leave() { tip.hidden = true; point(null); }

  // The value of each visible line and step at x.
  function values(figure, x) {
    const found = [];
    for (const layer of figure.layers) {
      if (layer.kind !== "line" && layer.kind !== "steps" || figure.hidden.has(layer.label)) continue;
      let value = NaN;
      for (const name of layer.models) {
        if (name.endsWith(".area")) continue;
        const { x: xs, y: ys } = find(name).data_source.data;
        if (!(x >= xs[0] && x <= xs[xs.length - 1])) continue;
        let low = 0, high = xs.length - 1;
        while (high - low > 1) { const middle = (low + high) >> 1; if (xs[middle] <= x) low = middle; else high = middle; }
        // On a logarithmic axis, a zero is drawn below the frame.
        const zero = (found) => figure.y.log && found < figure.y.low ? 0 : found;
        value = layer.kind === "line" && x - xs[low] > xs[high] - x ? ys[high] : zero(ys[low]);
      }
      if (isFinite(value)) found.push({ layer, value });
    }
    return found;
  }

  // The cursor of all plots over time, with the values under it in the legends.
  function point(at) {
    if (at === cursor) return;
    cursor = at;
    for (const figure of figures.values()) {
      if (figure.x.unit !== "time") continue;
      const line = figure.box.querySelector(".cursor");
      const box = at === null ? null : figure.box.getBoundingClientRect();
      const seen = box && box.bottom > 0 && box.top < innerHeight;
      const { start, end } = figure.plot.x_range;
      line.hidden = !seen || at < start || at > end;
      if (!line.hidden) {
        const area = frame(figure), host = figure.box.querySelector(".plot").getBoundingClientRect();
        line.style.left = `${area.left - host.left + area.width * (at - start) / (end - start)}px`;
        line.style.top = `${area.top - host.top}px`;
        line.style.height = `${area.height}px`;
      }
      if (!seen && at !== null) continue;
      const here = new Map(at === null ? [] : values(figure, at).map(({ layer, value }) => [layer.label, said(figure.y, value)]));
      for (const cell of figure.box.querySelectorAll("[data-here]")) cell.textContent = here.get(cell.dataset.here) ?? "";
    }
  }

  function zoom(range, [low, high], log, factor, shift = 0) {
    const a = log ? Math.log(range.start) : range.start, b = log ? Math.log(range.end) : range.end;
    const middle = (a + b) / 2 + shift * (b - a), half = (b - a) / 2 * factor;
    const clip = (v) => Math.min(Math.max(log ? Math.exp(v) : v, low), high);
    range.setv({ start: clip(middle - half), end: clip(middle + half) });
  }

  // Resets a diagram and those that share its range of time.
  function home({ plot: { x_range }, home: [x0, x1] }) {
    x_range.setv({ start: x0, end: x1 });
    for (const { plot, home: [, , y0, y1] } of figures.values())
      if (plot.x_range === x_range) plot.y_range.setv({ start: y0, end: y1 });
  }

  function key(figure, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { x_range: x, y_range: y } = figure.plot, [x0, x1, y0, y1] = figure.home, fine = event.shiftKey ? 0.05 : 0.25;
    const actions = {
      "+": () => zoom(x, [x0, x1], figure.x.log, 0.5), "=": () => zoom(x, [x0, x1], figure.x.log, 0.5),
      "-": () => zoom(x, [x0, x1], figure.x.log, 2),
      ArrowLeft: () => zoom(x, [x0, x1], figure.x.log, 1, -fine), ArrowRight: () => zoom(x, [x0, x1], figure.x.log, 1, fine),
      ArrowUp: () => zoom(y, [y0, y1], figure.y.log, 1, fine), ArrowDown: () => zoom(y, [y0, y1], figure.y.log, 1, -fine),
      "[": () => zoom(y, [y0, y1], figure.y.log, 0.5), "]": () => zoom(y, [y0, y1], figure.y.log, 2),
      0: () => home(figure),
    };
    const action = actions[event.key];
    if (action) { event.preventDefault(); action(); }
  }

  // Bokeh paints over old pixels and covers the first pixels of the canvas only half, so that a line remained visible.
  function clear(figure) {
    for (const { canvas, ctx } of [Bokeh.index.find_one(figure.plot)?.canvas_view?.primary].filter((layer) => layer?.canvas)) {
      ctx.save();
      ctx.setTransform(1, 0, 0, 1, 0, 0);
      ctx.clearRect(0, 0, canvas.width, canvas.height);
      ctx.restore();
    }
  }

  function recolour() {
    const colours = palette();
    for (const figure of figures.values()) clear(figure);
    for (const model of Bokeh.documents[0].all_models)
      for (const tag of model.tags ?? []) {
        for (const [property, role] of Object.entries(tag.roles ?? {})) model.setv({ [property]: colours.roles[role] });
        for (const [property, of] of Object.entries(tag.paper ?? {})) model.setv({ [property]: colours[of] });
      }
    for (const figure of figures.values()) repaint(figure);
  }

  addEventListener("scroll", leave, { passive: true });
  document.getElementById("theme").addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; recolour(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  const wait = () => Bokeh.documents.length && about.figures.every((each) => Bokeh.index.find_one?.(find(each.name))) ? start() : setTimeout(wait, 20);
  hold();
  if (about.figures.length) wait(); else root.dataset.ready = "yes";
  window.iosonar.figures = figures;
})();
