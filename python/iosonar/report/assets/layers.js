// Lines and steps: their numbers, their shapes in pixels, and their values under the cursor.
"use strict";
iosonar.layers = (() => {
  const FAR = 1e6; // pixels beyond which a canvas is no longer exact

  // The arrays of a figure: each is a list, evenly spaced, or at a position of the figure's packed bytes, in which bytes of
  // equal significance are adjacent.
  async function unpack(packed) {
    if (!packed) return new Uint8Array();
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }
  const TYPES = { f4: Float32Array, f8: Float64Array, i4: Int32Array };
  function numbers(kept, bytes) {
    if (Array.isArray(kept)) return Float64Array.from(kept, (value) => value ?? NaN);
    const { n, from, to, type, at } = kept;
    if (!type) return Float64Array.from({ length: n }, (_, i) => i === n - 1 ? to : from + (to - from) * i / (n - 1));
    const size = TYPES[type].BYTES_PER_ELEMENT, all = new Uint8Array(n * size);
    for (let plane = 0; plane < size; plane++)
      for (let i = 0, first = at + plane * n; i < n; i++) all[i * size + plane] = bytes[first + i];
    return new TYPES[type](all.buffer);
  }

  // The last position with a value up to this one, in sorted values.
  function before(sorted, value) {
    let low = 0, high = sorted.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (sorted[middle] <= value) low = middle; else high = middle; }
    return high > 0 && sorted[high] <= value ? high : low;
  }
  const near = (pixel) => Math.min(Math.max(pixel, -FAR), FAR);

  // A staircase in pixels: for each section without a gap its corners, as x, y, x, y, …; equal values have none between them.
  function stairs(edges, y, first, last, px, py) {
    const sections = [];
    let section = null;
    for (let i = first; i < last; i++) {
      if (Number.isNaN(y[i])) { section = null; continue; }
      const right = near(px(edges[i + 1])), level = near(py(y[i]));
      if (!section) sections.push(section = [near(px(edges[i])), level, right, level]);
      else if (section[section.length - 1] === level) section[section.length - 2] = right;
      else section.push(section[section.length - 2], level, right, level);
    }
    return sections;
  }

  // Points joined by lines, in pixels, likewise. A line that leaves the canvas far away is cut there.
  function joined(x, y, first, last, px, py) {
    const sections = [];
    let section = null;
    for (let i = first; i < last; i++) {
      if (Number.isNaN(y[i]) || Number.isNaN(x[i])) { section = null; continue; }
      if (!section) sections.push(section = []);
      section.push(px(x[i]), near(py(y[i])));
    }
    for (const each of sections)
      for (const [end, next] of [[0, 2], [each.length - 2, each.length - 4]]) {
        const cut = near(each[end]);
        if (cut !== each[end] && next >= 0 && next < each.length) each[end + 1] += (each[next + 1] - each[end + 1]) * (cut - each[end]) / (each[next] - each[end]);
        each[end] = cut;
      }
    return sections;
  }

  // Of many points in a column of pixels, the first, lowest, highest and last: they look the same.
  function thin(section, width) {
    if (section.length < 16 * width) return section;
    const kept = [];
    for (let i = 0; i < section.length;) {
      const column = Math.round(section[i]);
      let low = i, high = i, last = i;
      for (let j = i; j < section.length && Math.round(section[j]) === column; j += 2) {
        if (section[j + 1] < section[low + 1]) low = j;
        if (section[j + 1] > section[high + 1]) high = j;
        last = j;
      }
      for (const each of [...new Set([i, low, high, last])].sort((a, b) => a - b)) kept.push(section[each], section[each + 1]);
      i = last + 2;
    }
    return kept;
  }

  // The sections of a layer in the visible range, each kind of stroke by itself.
  function shapes(layer, { low, high }, px, py, width) {
    const { kind, x, y, edges, partial = 0 } = layer, along = kind === "line" ? x : edges;
    if (!y.length) return [];
    // The points of a line may be in any order, such as those of an error bar.
    const first = layer.ordered ? before(along, low) : 0, last = layer.ordered ? Math.min(before(along, high) + 2, y.length) : y.length;
    if (kind === "line") return [{ stroke: layer.stroke, sections: joined(x, y, first, last, px, py).map((each) => thin(each, width)) }];
    const whole = y.length - partial;
    return [[first, Math.min(last, whole), layer.stroke], [Math.max(first, whole), last, "dotted"]].filter(([from, to]) => from < to)
      .map(([from, to, stroke]) => ({ stroke, sections: stairs(edges, y, from, to, px, py).map((each) => thin(each, width)) }));
  }

  const ordered = (numbers) => numbers.every((each, i) => !i || numbers[i - 1] <= each);

  // The value of a layer at x; NaN if it has none.
  function value({ kind, x, edges, y, ordered }, at) {
    const along = kind === "line" ? x : edges, last = along.length - 1;
    if (!ordered || !y.length || !(at >= along[0] && at <= along[last])) return NaN;
    const found = before(along, at);
    if (kind === "steps") return y[Math.min(found, y.length - 1)];
    return y[found < last && at - x[found] > x[found + 1] - at ? found + 1 : found];
  }

  // The least and largest value in a range, with lines that only cross it.
  function extent({ kind, x, edges, y, ordered }, { low, high }, least) {
    const along = kind === "line" ? x : edges;
    let min = Infinity, max = -Infinity;
    if (!y.length || along[0] > high || along[along.length - 1] < low) return [min, max];
    for (let i = ordered ? before(along, low) : 0; i < y.length; i++) {
      if (along[i] > high && ordered) break;
      if (!(y[i] >= least) || along[i] > high || kind === "line" && along[i] < low && !(along[i + 1] > high)) continue;
      min = Math.min(min, y[i]); max = Math.max(max, y[i]);
    }
    return [min, max];
  }
  return { unpack, numbers, ordered, stairs, joined, thin, shapes, value, extent };
})();
