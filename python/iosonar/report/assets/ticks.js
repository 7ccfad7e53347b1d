// The ticks of the visible part of an axis: round numbers, powers of two for bytes, parts of minutes and hours for long times.
"use strict";
Object.assign(iosonar, (() => {
  const MOST = 12, GAP = 14; // labels on an axis; pixels between two
  const LONG = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200]; // seconds
  const DAY = 86400;
  const pen = document.createElement("canvas").getContext("2d");
  const FONT = "12px helvetica, sans-serif";
  const width = (said, font = FONT) => { pen.font = font; return pen.measureText(said).width; };
  const powers = (start, end, base) => {
    const first = Math.ceil(Math.log(start) / Math.log(base) - 1e-9), last = Math.floor(Math.log(end) / Math.log(base) + 1e-9);
    return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => first + i);
  };
  const even = (start, end, step) => {
    const first = Math.ceil(start / step - 1e-9), last = Math.floor(end / step + 1e-9);
    // Where numbers have no more digits, there are no ticks between them.
    return Array.from({ length: Math.min(Math.max(last - first + 1, 0), 1000) }, (_, i) => (first + i) * step);
  };
  const roundStep = (rough, binary = false) => {
    if (binary) return 2 ** Math.ceil(Math.log2(rough));
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].find((step) => step * power >= rough * (1 - 1e-9)) * power;
  };
  const longStep = (rough) => rough < 1 ? roundStep(rough) : LONG.find((step) => step >= rough) ?? roundStep(rough / DAY) * DAY;

  // Logarithmic axes, and bytes.
  function round(unit, log, start, end) {
    const binary = unit === "bytes";
    const linear = () => ({ major: even(start, end, roundStep((end - start) / 6, binary)), minor: [] });
    if (!log) return linear();
    if (binary) {
      const found = powers(start, end, 2), step = Math.ceil(found.length / MOST);
      if (found.length < 3) return linear();
      return { major: found.filter((power) => power % step === 0).map((power) => 2 ** power), minor: found.filter((power) => power % step).map((power) => 2 ** power) };
    }
    const decades = powers(start / 10, end, 10), step = Math.ceil(decades.length / MOST), long = decades.length > 4;
    const of = (steps) => decades.flatMap((power) => steps.map((n) => n * 10 ** power)).filter((v) => v >= start * (1 - 1e-9) && v <= end * (1 + 1e-9));
    if (!long && of([1, 2, 5]).length < 3) return linear();
    return { major: long ? of([1]).filter((v) => Math.round(Math.log10(v)) % step === 0) : of([1, 2, 5]), minor: of([2, 3, 4, 5, 6, 7, 8, 9]) };
  }

  function ticks(unit, log, start, end, floor = 0) {
    const found = round(unit, log, start, end), seen = floor && floor >= start * (1 - 1e-9) && floor <= end;
    return seen ? { ...found, major: [floor, ...found.major.filter((at) => at > floor * (1 + 1e-9))] } : found;
  }

  // Linear axes of other units; `wanted` is the number of ticks, give or take a half, but at least three where there are.
  function plain({ long, whole }, start, end, wanted) {
    const step = (rough) => long ? longStep(rough) : whole ? Math.max(roundStep(rough), 1) : roundStep(rough);
    const rough = (end - start) / wanted / 1.4, first = step(rough), by = even(start, end, first).length < 3 ? step(first / 2.5) : first;
    return { major: even(start, end, by), minor: long || whole ? [] : even(start, end, by / 5) };
  }

  // Positions and texts of the ticks of an axis in a range. An x axis of `room` pixels has labels that do not collide.
  function axisTicks(axis, { low, high }, place, room = 0) {
    if (axis.named.length) return { major: axis.named.filter(([at]) => at >= low && at <= high), minor: [] };
    const lowest = axis.floor ? axis.low : 0, most = axis.long ? 9 : 6;
    const wanted = room ? Math.max(Math.min(most, Math.floor(room / 110)), 2) : most;
    const found = axis.log || axis.unit === "bytes" ? ticks(axis.unit, axis.log, low, high, lowest) : plain(axis, low, high, wanted);
    const labels = found.major.map((at) => [at, iosonar.tick(axis.unit, at, axis.long, found.major, lowest)]);
    return { major: room ? thinned(labels, place) : labels, minor: found.minor };
  }

  // Every second, third, … of the ticks of an x axis, so that labels do not collide.
  function thinned(labels, place) {
    const taken = labels.map(([at, said]) => [place(at), width(said) / 2 + GAP / 2]);
    const fits = (step) => taken.filter((_, i) => i % step === 0).every(([at, half], i, kept) => !i || at - half >= kept[i - 1][0] + kept[i - 1][1]);
    for (let step = 1; step < labels.length; step++) if (fits(step)) return labels.filter((_, i) => i % step === 0);
    return labels.slice(0, 1);
  }
  return { ticks, axisTicks, width, FONT };
})());
