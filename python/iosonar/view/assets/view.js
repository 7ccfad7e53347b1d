// Asks for the window of each visible plot, as soon as it changes; of several changes, for the last. Draws what it has meanwhile.
//
// For tests and scripts: `iosonar.drawn()` resolves when every visible plot shows the numbers of its own window.
"use strict";
(() => {
  const asks = new Map(), later = iosonar.later;
  const EACH_MS = 1000;

  iosonar.ask = async (name, parameters = {}) => {
    const answer = await fetch(`${name}?${new URLSearchParams(parameters)}`, { credentials: "omit" });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  };

  // A window: the length of its JSON in four bytes, the JSON, and the bytes of its arrays.
  async function askWindow(parameters) {
    const answer = await fetch(`window?${new URLSearchParams(parameters)}`, { credentials: "omit" });
    if (!answer.ok) throw new Error((await answer.json()).error);
    const all = await answer.arrayBuffer(), length = new DataView(all).getUint32(0, true);
    return { ...JSON.parse(new TextDecoder().decode(new Uint8Array(all, 4, length))), packed: new Uint8Array(all, 4 + length) };
  }

  iosonar.later = (plot) => { later(plot); want(plot); };

  iosonar.drawn = async () => {
    while ([...asks.values()].some((each) => each.running || each.wanted && isNear(each.plot))) await new Promise((done) => setTimeout(done, 5));
    return true;
  };

  // The parameters of a window.
  iosonar.windowOf = (plot, { x, y } = {}) => {
    const { low: x0, high: x1 } = x ?? plot.xRange, { low: y0, high: y1 } = y ?? plot.yRange;
    const { width, height } = plot.frame ?? { width: plot.host.clientWidth, height: 284 };
    return { figure: plot.name, x0, x1, y0, y1, w: Math.round(width), h: Math.round(height) };
  };

  function isNear({ host }) {
    const { top, bottom } = host.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  }

  function want(plot) {
    const ask = asks.get(plot);
    if (!ask) return;
    ask.wanted = true;
    if (!ask.running && isNear(plot)) run(ask);
  }

  async function run(ask) {
    const { plot } = ask;
    ask.running = true;
    while (ask.wanted && isNear(plot)) {
      const parameters = iosonar.windowOf(plot), key = JSON.stringify(parameters) + ask.version;
      ask.wanted = false;
      if (key === ask.key) continue;
      try {
        await show(plot, await askWindow(parameters));
        ask.key = key;
        say();
      } catch (error) { say(`The view does not answer: ${error.message}`); break; }
    }
    ask.running = false;
  }

  async function show(plot, found) {
    await iosonar.Plot.fill(found.layers, found.packed);
    for (const layer of found.layers) if (layer.kind === "cloud") layer.own = { x: found.x, y: found.y };
    grow(plot, found.whole);
    plot.layers = found.layers;
    plot.clouds = found.layers.filter(({ kind }) => kind === "cloud");
    plot.curves = found.layers.filter(({ kind }) => kind !== "cloud");
    plot.bars = found.bars;
    plot.box.querySelector(".of").textContent = `${iosonar.text("requests", found.count)} requests from ${iosonar.text("time", plot.xRange.low)} to ${iosonar.text("time", plot.xRange.high)}`;
    for (const input of plot.box.querySelectorAll("input[data-series]")) {
      const [cell] = found.legend[input.dataset.series] ?? [];
      if (cell) input.closest("tr").lastElementChild.textContent = cell;
    }
    plot.stale = true;
    later(plot);
  }

  // The whole axes of a run that goes on: what showed all of them, or their end, still does.
  function grow(plot, { x: [x0, x1], y: [y0, y1] }) {
    const { xRange, yRange, x, y } = plot;
    if (y.low !== y0 || y.high !== y1) {
      const whole = yRange.low === y.low && yRange.high === y.high;
      Object.assign(y, { low: y0, high: y1 });
      if (y.floor) y.floor = y0;
      if (whole) Object.assign(yRange, { low: y0, high: y1 });
    }
    if (x.low === x0 && x.high === x1) return;
    // Another plot may already have moved the range that they share.
    const before = { low: x.low, high: x.high };
    Object.assign(x, { low: x0, high: x1 });
    if (xRange.high < before.high || xRange.high >= x1) return;
    const length = xRange.low <= before.low ? x1 - x0 : xRange.high - xRange.low;
    Object.assign(xRange, { low: x1 - length, high: x1 });
    for (const other of xRange.plots) other.changed();
  }

  // How far the run is, or why nothing more is drawn.
  const words = document.getElementById("state");
  let course = "";
  function say(trouble = "") { words.textContent = trouble || course; words.hidden = !words.textContent; }

  // A run that goes on: a new window of each plot, each second.
  async function follow() {
    let rows = -1, state = { follows: true };
    while (state.follows) {
      try { state = await iosonar.ask("state"); } catch (error) { say(`The view does not answer: ${error.message}`); await pause(); continue; }
      course = state.text;
      say();
      document.querySelector(".lead").textContent = state.lead;
      if (state.rows !== rows) for (const ask of asks.values()) { ask.version++; want(ask.plot); }
      rows = state.rows;
      document.documentElement.dataset.follows = state.follows ? "yes" : "no";
      if (state.follows) await pause();
    }
  }
  const pause = () => new Promise((done) => setTimeout(done, EACH_MS));

  for (const plot of iosonar.plots.values()) {
    plot.of = plot.box.querySelector(".of").textContent;
    asks.set(plot, { plot, wanted: true, running: false, version: 0 });
  }
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const ask = asks.get(iosonar.plots.get(target.dataset.name));
      if (isIntersecting && ask.wanted && !ask.running) run(ask);
    }
  });
  for (const { host } of iosonar.plots.values()) seen.observe(host);
  // A link to a place: #figure=latency.realtime&x0=1&x1=2, with y0 and y1 if they matter.
  function go() {
    const place = new URLSearchParams(location.hash.slice(1)), plot = iosonar.plots.get(place.get("figure"));
    const range = (axis) => ({ low: Number(place.get(`${axis}0`)), high: Number(place.get(`${axis}1`)) });
    const chosen = Object.fromEntries(["x", "y"].filter((axis) => place.has(`${axis}0`)).map((axis) => [axis, range(axis)]));
    if (!plot || !Object.values(chosen).every(({ low, high }) => low < high)) return;
    plot.choose(chosen);
    plot.box.scrollIntoView({ behavior: "instant" });
    plot.host.focus({ preventScroll: true });
  }
  addEventListener("hashchange", go);
  go();

  if (words.dataset.follows === "yes") follow();
})();
