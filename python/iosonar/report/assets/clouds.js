// Clouds: unpacks the cells of their rasters, and makes an image of what is being looked at, in its own resolution.
"use strict";
iosonar.clouds = (() => {
  const PIXELS = 2; // of a dot, at least, across and up
  const REACH = 3, LONELY_SHARE = 0.12; // as in figures/raster.py

  async function unpack(cells) {
    const bytes = Uint8Array.from(atob(cells), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const planes = new Uint8Array(await new Response(stream).arrayBuffer());
    const n = planes.length / 4, half = n / 2;
    const number = (i) => planes[i] | (planes[n + i] << 8) | (planes[2 * n + i] << 16) | (planes[3 * n + i] << 24);
    const places = new Int32Array(half), counts = new Int32Array(half);
    for (let i = 0, place = 0; i < half; i++) { place += number(i); places[i] = place; counts[i] = number(half + i); }
    return { places, counts };
  }

  // A position on an axis as a share of the whole axis, and back.
  const forward = (axis) => axis.log
    ? (v) => Math.log(v / axis.low) / Math.log(axis.high / axis.low) : (v) => (v - axis.low) / (axis.high - axis.low);
  const back = (axis) => axis.log
    ? (s) => axis.low * (axis.high / axis.low) ** s : (s) => axis.low + s * (axis.high - axis.low);

  const rgb = (text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));

  // What part of the raster is seen, and how many of its cells make one dot.
  function view(axis, range, cells, pixels) {
    const share = forward(axis);
    const first = Math.max(0, Math.floor(share(range.start) * cells)), last = Math.min(cells, Math.ceil(share(range.end) * cells));
    let step = 1;
    while ((last - first) / step > pixels / PIXELS) step *= 2;
    const from = Math.floor(first / step) * step, count = Math.max(Math.ceil((last - from) / step), 0);
    return { from, step, count, low: back(axis)(from / cells), high: back(axis)((from + count * step) / cells) };
  }

  // Adds a level's counts to the dots that are seen; a cell that covers several has its requests spread over them.
  function fill(grid, filled, level, x, y) {
    const [wide, high] = level.joined, w = x.count, h = y.count;
    const dotsWide = Math.max(wide / x.step, 1), dotsHigh = Math.max(high / y.step, 1), dots = dotsWide * dotsHigh;
    for (let i = 0; i < level.places.length; i++) {
      const place = level.places[i], row = Math.floor(place / level.across);
      const cx = Math.floor(((place - row * level.across) * wide - x.from) / x.step), cy = Math.floor((row * high - y.from) / y.step);
      if (cx >= w || cy >= h || cx + dotsWide <= 0 || cy + dotsHigh <= 0) continue;
      const share = dots > 1 ? Math.max(Math.round(level.counts[i] / dots), 1) : level.counts[i];
      for (let dy = Math.max(cy, 0); dy < Math.min(cy + dotsHigh, h); dy++)
        for (let dx = Math.max(cx, 0); dx < Math.min(cx + dotsWide, w); dx++) { grid[dy * w + dx] += share; filled[dy * w + dx] = 1; }
    }
  }

  function paint(figure, layer, palette, hidden) {
    const x = view(figure.x, figure.plot.x_range, layer.across, figure.width());
    const y = view(figure.y, figure.plot.y_range, layer.up, figure.height());
    const w = x.count, h = y.count, source = layer.source;
    if (w < 1 || h < 1) { source.data = { image: [], x: [], y: [], dw: [], dh: [] }; return; }
    const filled = new Uint8Array(w * h), sums = [];
    let most = 2;
    for (const part of layer.parts) {
      if (hidden.has(part.label)) continue;
      const grid = new Uint32Array(w * h);
      for (const level of part.levels) fill(grid, filled, level, x, y);
      for (const sum of grid) if (sum > most) most = sum;
      sums.push({ part, grid, colour: rgb(palette.roles[part.role]) });
    }
    const ink = rgb(palette.ink), image = new Uint32Array(w * h), mix = new Float64Array(4);
    const dots = [];
    for (let at = 0; at < w * h; at++) {
      if (!filled[at]) continue;
      mix.fill(0);
      let weights = 0, clear = 1, over = null;
      for (const { part, grid, colour } of sums) {
        if (!grid[at]) continue;
        const strong = Math.log(grid[at]) / Math.log(most), pull = 0.33 * strong ** 1.5;
        const shade = colour.map((c, i) => c * (1 - pull) + ink[i] * pull);
        if (part.role === "read" || part.role === "write") {
          const weight = 0.2 + strong;
          for (let i = 0; i < 3; i++) mix[i] += shade[i] * weight;
          weights += weight; clear *= 1 - (0.6 + 0.4 * Math.min(2 * strong, 1));
        } else over = shade;
      }
      const room = spare(filled, w, h, at), alone = room >= 0;
      const colour = over ?? [0, 1, 2].map((i) => mix[i] / weights);
      const alpha = over || alone ? 255 : Math.round(255 * (1 - clear));
      const value = ((alpha << 24) | (colour[2] << 16) | (colour[1] << 8) | colour[0]) >>> 0;
      image[at] = value;
      if (room > 0) dots.push([at, value, room]);
    }
    // A lonely dot grows to a plus, so that it is seen; over nothing that is there. Less if others are near: what is
    // sparse must not look heavier than what is denser.
    for (const [at, value, room] of dots) {
      const cx = at % w;
      for (const near of [cx > 0 ? at - 1 : at, cx < w - 1 ? at + 1 : at, at - w, at + w].slice(0, room))
        if (near >= 0 && near < w * h && !filled[near]) image[near] = value;
    }
    source.data = {
      image: [iosonar.ndarray(image, h, w)], x: [x.low], y: [y.low], dw: [x.high - x.low], dh: [y.high - y.low],
    };
  }

  // Into how many cells beside its own a dot may grow, by how many are filled near it; below zero if it isn't lonely.
  function spare(filled, w, h, at) {
    const cx = at % w, cy = (at / w) | 0, limit = LONELY_SHARE * (2 * REACH + 1) ** 2;
    let near = 0;
    for (let y = Math.max(cy - REACH, 0); y <= Math.min(cy + REACH, h - 1); y++)
      for (let x = Math.max(cx - REACH, 0); x <= Math.min(cx + REACH, w - 1); x++)
        if (filled[y * w + x] && ++near > limit) return -1;
    return Math.min(Math.round(limit / near) - 1, 4);
  }

  // How many requests of each series lie within a few pixels of a place.
  function near(figure, layer, at, hidden) {
    const reach = 4;
    const sx = forward(figure.x)(at.x) * layer.across, sy = forward(figure.y)(at.y) * layer.up;
    const x = view(figure.x, figure.plot.x_range, layer.across, figure.width()), y = view(figure.y, figure.plot.y_range, layer.up, figure.height());
    const rx = Math.max(0.5, reach * (x.count * x.step) / figure.width()), ry = Math.max(0.5, reach * (y.count * y.step) / figure.height());
    return layer.parts.filter((part) => !hidden.has(part.label)).map((part) => {
      let total = 0;
      for (const { joined: [wide, high], across, places, counts } of part.levels)
        for (let i = 0; i < places.length; i++) {
          const dx = (places[i] % across + 0.5) * wide - sx, dy = (Math.floor(places[i] / across) + 0.5) * high - sy;
          if (Math.abs(dx) <= Math.max(rx, wide / 2) && Math.abs(dy) <= Math.max(ry, high / 2)) total += counts[i];
        }
      return { label: part.label, role: part.role, total };
    });
  }
  return { unpack, paint, near };
})();
