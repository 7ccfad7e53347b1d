// Clouds: paints the visible part of their cells as dots of constant size.
//
// The visible part is divided into a lattice of dots by the rules of figures/dots.py: the requests of a cell that covers
// many lattice points are spread over them; each dot has the colour of one series, chosen at random with the series'
// shares as probabilities; in each patch, every series with requests has a dot. Points and patches keep their places while
// the reader pans.
"use strict";
iosonar.clouds = (() => {
  const PATCH = 16, MAX_COLUMN = 24, STEPS = [0.7548776662466927, 0.5698402909980532]; // as in figures/dots.py
  const MAX_PAPER = 0.28, MAX_INK = 0.6, CORNER_OPACITY = 0.5; // as in figures/raster.py
  const SHADES = 255, SAME = 1e-3; // a cell counted for just a dot may be larger by rounding

  // The columns and rows of a level's cells, from its packed numbers: differences of positions, row × across + column.
  function cells({ joined, across, places, counts }, bytes) {
    const steps = iosonar.layers.numbers(places, bytes), columns = new Int32Array(steps.length), rows = new Int32Array(steps.length);
    for (let i = 0, place = 0; i < steps.length; i++) { place += steps[i]; rows[i] = Math.floor(place / across); columns[i] = place - rows[i] * across; }
    return { joined, columns, rows, counts: iosonar.layers.numbers(counts, bytes) };
  }

  // A position on an axis as a share of the whole axis, and back.
  const forward = (axis) => axis.log
    ? (v) => Math.log(v / axis.low) / Math.log(axis.high / axis.low) : (v) => (v - axis.low) / (axis.high - axis.low);
  const back = (axis) => axis.log
    ? (s) => axis.low * (axis.high / axis.low) ** s : (s) => axis.low + s * (axis.high - axis.low);

  // Where a layer's cells are, as shares of the whole axis: all of it, or that of a part that was counted anew.
  function extent(axis, own) {
    if (!own) return { from: 0, span: 1 };
    const share = forward(axis), from = share(own.low);
    return { from, span: share(own.high) - from };
  }

  const rgb = (text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));

  // The visible part of an axis, as shares of its length, and the lattice over it, whose points are at multiples of their
  // distance. The first and last point may be partly beyond the part.
  function view(axis, range, pixels, dot) {
    const share = forward(axis), start = share(range.low), to = share(range.high), place = (to - start) * dot / pixels;
    const first = Math.floor(start / place + 1e-6), from = first * place, count = Math.max(Math.ceil((to - from) / place - 1e-6), 1);
    return { from, place, count, first, low: back(axis)(from), high: back(axis)(from + count * place) };
  }

  // A quasirandom number in [0, 1) for each point: evenly spread among neighbours, and reproducible.
  const lot = (column, row) => { const at = column * STEPS[0] + row * STEPS[1]; return at - Math.floor(at); };

  // A pseudorandom number in [0, 1) for each point.
  function chance(column, row) {
    let mixed = Math.imul(column, 0x9e3779b1) ^ Math.imul(row, 0x85ebca77);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
    mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  }

  const gcd = (a, b) => b ? gcd(b, a % b) : a;
  const steps = new Map();
  function step(size) {
    if (!steps.has(size)) {
      let found = Math.max(Math.round(size * 0.6180339887498949), 1);
      while (gcd(found, size) > 1) found++;
      steps.set(size, found);
    }
    return steps.get(size);
  }

  // Adds the counts of one series to the visible points.
  function fill(grid, level, layer, x, y, taken, { x: ox, y: oy }) {
    const { joined: [wide, high], columns, rows, counts } = level, w = x.count, h = y.count;
    const across = wide / layer.across * ox.span / x.place, up = high / layer.up * oy.span / y.place, x0 = (x.from - ox.from) / x.place, y0 = (y.from - oy.from) / y.place;
    const small = across < 1 + SAME && up < 1 + SAME;
    for (let i = 0; i < counts.length; i++) {
      const left = columns[i] * across - x0, low = rows[i] * up - y0;
      if (left >= w || low >= h || left + across <= 0 || low + up <= 0) continue;
      if (small && !layer.whole) {
        // If a cell is smaller than a dot, its middle is accurate enough.
        const cx = Math.floor(left + across / 2), cy = Math.floor(low + up / 2);
        if (cx >= 0 && cx < w && cy >= 0 && cy < h) grid[cy * w + cx] += counts[i];
        continue;
      }
      if (layer.whole) stack(grid, { left, right: left + across, low, top: low + up, column: columns[i], n: counts[i] }, w, h, taken);
      else scatter(grid, left, across, low, up, columns[i], rows[i], counts[i], w, h);
    }
  }

  // Few requests of a cell are at random points in it; many are spread over all its points.
  function scatter(grid, left, wide, low, high, column, row, n, w, h) {
    const right = left + wide, top = low + high, x0 = Math.floor(left), x1 = Math.ceil(right), y0 = Math.floor(low), y1 = Math.ceil(top);
    if (n < 4 * (x1 - x0) * (y1 - y0)) {
      for (let j = 0; j < n; j++) {
        const cx = Math.floor(left + wide * (wide < 1 ? 0.5 : chance(column + 7919 * j, row)));
        const cy = Math.floor(low + high * (high < 1 ? 0.5 : chance(row, column + 7919 * j)));
        if (cx >= 0 && cx < w && cy >= 0 && cy < h) grid[cy * w + cx]++;
      }
      return;
    }
    const each = n / (wide * high), from = x0 < 0 ? 0 : x0, to = x1 > w ? w : x1, last = y1 > h ? h : y1;
    for (let cy = y0 < 0 ? 0 : y0; cy < last; cy++) {
      const share = each * ((cy + 1 < top ? cy + 1 : top) - (cy > low ? cy : low));
      for (let cx = from, at = cy * w + from; cx < to; cx++, at++) grid[at] += share * ((cx + 1 < right ? cx + 1 : right) - (cx > left ? cx : left));
    }
  }

  // The requests at an integer, from the middle of its column outwards. `taken` is the number of dots that each row of the
  // column already has, so that those of the next series or cell go to free points.
  function stack(grid, { left, right, low, top, column, n }, w, h, taken) {
    let x0 = Math.round(left), across = Math.round(right) - x0;
    if (across < 1) { x0 = Math.floor((left + right) / 2); across = 1; }
    const narrow = Math.min(across > 4 ? across - Math.max(Math.floor(across / 5), 1) : across, MAX_COLUMN);
    x0 += (across - narrow) >> 1;
    let y0 = Math.round(low), up = Math.round(top) - y0;
    if (up < 1) { y0 = Math.floor((low + top) / 2); up = 1; }
    const room = narrow * up, key = `${column}:${y0}`, before = taken.get(key) ?? 0, by = step(room), number = Math.min(n, room);
    taken.set(key, before + n);
    const start = (up >> 1) * narrow + (narrow >> 1);
    for (let j = 0; j < number; j++) {
      const at = (start + ((before + j) % room) * by) % room, cx = x0 + at % narrow, cy = y0 + Math.floor(at / narrow);
      if (cx >= 0 && cx < w && cy >= 0 && cy < h) grid[cy * w + cx] += n / number;
    }
  }

  // The series of each point (its number plus one; 0 for none), at random, but such that no series is invisible.
  function drawn(sums, totals, { count: w, first: x0 }, { count: h, first: y0 }) {
    const shown = new Uint8Array(w * h), kinds = sums.length, grids = sums.map(({ grid }) => grid);
    const dx = x0 - Math.floor(x0 / PATCH) * PATCH, dy = y0 - Math.floor(y0 / PATCH) * PATCH, across = Math.ceil((w + dx) / PATCH);
    const seen = new Uint32Array(across * Math.ceil((h + dy) / PATCH) * kinds), best = new Map();
    const patches = Int32Array.from({ length: w }, (_, cx) => Math.floor((cx + dx) / PATCH));
    for (let cy = 0, at = 0; cy < h; cy++) {
      const first = Math.floor((cy + dy) / PATCH) * across;
      for (let cx = 0; cx < w; cx++, at++) {
        if (!totals[at]) continue;
        let left = lot(cx + x0, cy + y0) * totals[at], kind = 0;
        while (kind < kinds - 1 && (left -= grids[kind][at]) >= 0) kind++;
        while (!grids[kind][at]) kind--;
        shown[at] = kind + 1;
        seen[(first + patches[cx]) * kinds + kind]++;
      }
    }
    for (let patch = 0; patch < seen.length; patch++) {
      if (seen[patch]) continue;
      const kind = patch % kinds, grid = grids[kind], column = (patch - kind) / kinds % across, left = column * PATCH - dx;
      const low = (patch - kind - column * kinds) / kinds / across * PATCH - dy, right = Math.min(left + PATCH, w);
      for (let cy = Math.max(low, 0); cy < Math.min(low + PATCH, h); cy++)
        for (let cx = Math.max(left, 0), at = cy * w + cx; cx < right; cx++, at++) {
          if (!grid[at]) continue;
          const weight = grid[at] / totals[at] * (0.01 + chance(cx + x0, cy + y0));
          if (!(best.get(patch)?.weight >= weight)) best.set(patch, { weight, at, kind });
        }
    }
    for (const [want, { at, kind }] of [...best].sort(([, a], [, b]) => a.at - b.at || a.kind - b.kind)) {
      const have = want - kind + shown[at] - 1;
      if (seen[have] > 1 || sums[kind].part.role === "failed") { seen[have]--; seen[want]++; shown[at] = kind + 1; }
    }
    return shown;
  }

  function largest(numbers, most) {
    for (let i = 0; i < numbers.length; i++) if (numbers[i] > most) most = numbers[i];
    return most;
  }

  // The colours of a dot from one request to the fullest one, as in `shade` of figures/raster.py.
  function shades(role, palette) {
    const colour = rgb(palette.roles[role]), paper = rgb(palette.plot), ink = rgb(palette.ink);
    return Int32Array.from({ length: SHADES + 1 }, (_, i) => {
      const pale = MAX_PAPER * (1 - Math.min(2 * i / SHADES, 1)), deep = MAX_INK * Math.max(2 * i / SHADES - 1, 0);
      const [r, g, b] = colour.map((c, j) => Math.round((c * (1 - pale) + paper[j] * pale) * (1 - deep) + ink[j] * deep));
      return (255 << 24) | (b << 16) | (g << 8) | r;
    });
  }

  // The visible part of a cloud as an image with a pixel for each of the screen, its first row at the top; x and y are its ends.
  function image(plot, layer, palette) {
    const dot = layer.dot, { hidden } = plot;
    const x = view(plot.x, plot.xRange, plot.frame.width, dot), y = view(plot.y, plot.yRange, plot.frame.height, dot);
    const w = x.count, h = y.count, places = { x: extent(plot.x, layer.own?.x), y: extent(plot.y, layer.own?.y) }, taken = new Map(), totals = new Float64Array(w * h);
    const sums = layer.parts.filter((part) => !hidden.has(part.label)).map((part) => {
      const grid = new Float64Array(w * h);
      for (const level of part.levels) fill(grid, level, layer, x, y, taken, places);
      for (let at = 0; at < w * h; at++) totals[at] += grid[at];
      return { part, grid, colours: shades(part.role, palette) };
    });
    const shown = drawn(sums, totals, x, y), most = largest(totals, 2), each = SHADES / Math.log(most);
    const wide = w * dot, pixels = new ImageData(wide, h * dot), image = new Int32Array(pixels.data.buffer);
    for (let cy = 0, at = 0; cy < h; cy++)
      for (let cx = 0; cx < w; cx++, at++) {
        if (!shown[at]) continue;
        const colour = sums[shown[at] - 1].colours[totals[at] > 1 ? Math.round(Math.log(totals[at]) * each) : 0], first = (h - 1 - cy) * dot * wide + cx * dot;
        for (let dy = 0; dy < dot; dy++)
          for (let dx = 0; dx < dot; dx++) image[first + dy * wide + dx] = colour;
        if (dot < 3) continue;
        const left = cx > 0 && shown[at - 1], right = cx < w - 1 && shown[at + 1], below = shown[at - w], above = shown[at + w];
        for (const [one, other, dx, dy] of [[left, above, 0, 0], [right, above, 1, 0], [left, below, 0, 1], [right, below, 1, 1]])
          if (!one && !other) image[first + dy * (dot - 1) * wide + dx * (dot - 1)] = (Math.round(255 * CORNER_OPACITY) << 24) | (colour & 0xffffff);
      }
    return { pixels, x: [x.low, x.high], y: [y.low, y.high] };
  }

  // The number of requests of each series within a few pixels of a position.
  function near(plot, layer, at) {
    const reach = 5, ox = extent(plot.x, layer.own?.x), oy = extent(plot.y, layer.own?.y);
    const sx = (forward(plot.x)(at.x) - ox.from) / ox.span * layer.across, sy = (forward(plot.y)(at.y) - oy.from) / oy.span * layer.up;
    const x = view(plot.x, plot.xRange, plot.frame.width, 1), y = view(plot.y, plot.yRange, plot.frame.height, 1);
    const rx = reach * x.place / ox.span * layer.across, ry = reach * y.place / oy.span * layer.up;
    return layer.parts.filter((part) => !plot.hidden.has(part.label)).map((part) => {
      let total = 0;
      for (const { joined: [wide, high], columns, rows, counts } of part.levels)
        for (let i = 0; i < counts.length; i++) {
          const dx = (columns[i] + 0.5) * wide - sx, dy = (rows[i] + 0.5) * high - sy;
          if (Math.abs(dx) <= Math.max(rx, wide / 2) && Math.abs(dy) <= Math.max(ry, high / 2)) total += counts[i];
        }
      return { label: part.label, role: part.role, total };
    });
  }
  // The number of requests of each series in the visible part. Of a cell that is partly visible, its share counts.
  function visible(plot, layer) {
    const part = (axis, range, own, cells) => {
      const share = forward(axis), { from, span } = extent(axis, own), at = (value) => (share(value) - from) / span * cells;
      return [at(range.low), at(range.high)];
    };
    const [left, right] = part(plot.x, plot.xRange, layer.own?.x, layer.across), [bottom, top] = part(plot.y, plot.yRange, layer.own?.y, layer.up);
    const within = (first, size, low, high) => Math.min(Math.max((Math.min(first + size, high) - Math.max(first, low)) / size, 0), 1);
    return layer.parts.map(({ label, levels }) => {
      let total = 0, exact = true;
      for (const { joined: [wide, high], columns, rows, counts } of levels)
        for (let i = 0; i < counts.length; i++) {
          const share = within(columns[i] * wide, wide, left, right) * within(rows[i] * high, high, bottom, top);
          total += share * counts[i];
          if (share > SAME && share < 1 - SAME) exact = false;
        }
      return { label, total: Math.round(total), exact };
    });
  }
  return { cells, image, near, visible };
})();
