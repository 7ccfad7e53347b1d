// Formats numbers for people, as iosonar/units.py does.
"use strict";
window.iosonar = (() => {
  const commas = (text) => text.replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
  const digits = (value, n) => {
    if (!isFinite(value)) return "–";
    if (value === 0) return "0";
    const decimals = Math.min(Math.max(n - 1 - Math.floor(Math.log10(Math.abs(value))), 0), 12);
    // A half rounds up, although a division may leave it slightly below.
    const text = commas((Math.abs(value) < 1e6 ? value * (1 + 1e-14) : value).toFixed(decimals));
    return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
  };
  const scaled = (value, steps, n) => {
    for (const [size, unit] of steps) if (Math.abs(value) >= size * (1 - 0.5 * 10 ** -n)) return `${digits(value / size, n)}${unit}`;
    return null;
  };
  const TIMES = [[1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]];
  const LONG = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const span = (value, n) => {
    if (Math.abs(value) < 59.95) return value === 0 ? "0 s" : scaled(value, TIMES, n) ?? `${digits(value * 1e9, n)} ns`;
    let rest = Math.round(Math.abs(value));
    const parts = LONG.map(([size, unit]) => { const many = Math.floor(rest / size); rest %= size; return [many, unit]; });
    const first = parts.findIndex(([many]) => many);
    return (value < 0 ? "-" : "") + parts.slice(first, first + 2).filter(([many]) => many).map(([many, unit]) => `${commas(String(many))} ${unit}`).join(" ");
  };
  const LARGE = [[1e12, " T"], [1e9, " G"], [1e6, " M"]];
  const BYTES = [[2 ** 60, " EiB"], [2 ** 50, " PiB"], [2 ** 40, " TiB"], [2 ** 30, " GiB"], [2 ** 20, " MiB"], [2 ** 10, " KiB"]];
  const MOVED = [[1e18, " EB"], [1e15, " PB"], [1e12, " TB"], [1e9, " GB"], [1e6, " MB"], [1e3, " kB"]];
  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const count = (value, n = 3) => {
    if (!isFinite(value)) return "–";
    if (value > 0 && value < 1e-3) return "<0.001";
    return Math.abs(value) >= 100 ? commas(value.toFixed(0)) : digits(value, n);
  };
  // Abbreviates millions along an axis.
  const along = (value, n = 6) => {
    for (const [size, unit] of LARGE) if (Math.abs(value) >= size) return digits(value / size, n) + unit;
    if (value !== 0 && Math.abs(value) < 1e-3) {
      const power = Math.floor(Math.log10(Math.abs(value)));
      return `${digits(value / 10 ** power, n)} × 10⁻${[...String(-power)].map((digit) => RAISED[digit]).join("")}`;
    }
    return count(value, n);
  };
  // A share of 1 in percent, rounded, but never across a threshold.
  const FAITHFUL = 0.95;
  const percent = (share) => {
    if (!isFinite(share)) return "–";
    if (share === 0 || share === 1) return `${share * 100} %`;
    let tenths = Math.floor(share * 1000 + 0.5 + 1e-9);
    for (const limit of [FAITHFUL, 1]) if (share < limit && tenths >= limit * 1000 - 1e-6) tenths = Math.ceil(limit * 1000 - 1e-6) - 1;
    return share > 0 && tenths < 1 ? "<0.1 %" : `${(tenths / 10).toFixed(1)} %`;
  };
  const clock = (value, n = 3) => {
    const sign = value < 0 ? "-" : "", all = Math.abs(value);
    const h = Math.floor(all / 3600), m = Math.floor((all % 3600) / 60), s = all % 60;
    const two = (x) => String(x).padStart(2, "0");
    const seconds = Number(s.toFixed(n));
    return `${sign}${h}:${two(m)}:${seconds < 10 ? "0" : ""}${digits(seconds, n + 2)}`;
  };
  const text = (unit, value, n = 3) => {
    if (value === null || !isFinite(value)) return "–";
    if (unit === "s") return span(value, n);
    if (unit === "time") return `${digits(value, 6)} s`;
    if (unit === "bytes") return scaled(value, BYTES, n) ?? `${digits(value, n)} B`;
    if (unit === "bytes/s") return `${scaled(value, MOVED, n) ?? `${digits(value, n)} B`}/s`;
    if (unit === "times") return `${count(value, n)} ×`;
    if (unit === "odds") return `${digits(100 - 100 / value, 7)} %`;
    if (unit === "%" && n === 3 && value >= 0 && value <= 100) return percent(value / 100);
    if (unit === "%") return `${digits(value, n)} %`;
    return count(value, n) + (["requests/s", "GiB", "calls/s"].includes(unit) ? ` ${unit}` : "");
  };
  // The text of a tick, with as many digits as are needed to distinguish it from the others.
  const tick = (unit, value, long, others = [], floor = 0) => {
    // Values below the axis are at its lower end.
    if (floor && value <= floor * (1 + 1e-9)) return `≤ ${one(unit, value, long, 6)}`;
    for (let n = 6; n <= 15; n += 3) {
      const said = one(unit, value, long, n);
      if (n > 12 || others.every((other) => other === value || one(unit, other, long, n) !== said)) return said;
    }
  };
  const one = (unit, value, long, n) => {
    if (unit === "time") return long ? clock(value, Math.max(n - 3, 3)) : digits(value, n + 3);
    if (["requests/s", "GiB", "requests", "times", "calls", "calls/s"].includes(unit)) return along(value, n);
    if (unit === "s") return value === 0 ? "0 s" : scaled(value, TIMES, n) ?? `${digits(value * 1e9, n)} ns`;
    if (unit === "bytes/s" && value === 0) return "0";
    return text(unit, value, n);
  };
  // The ticks of the visible part of an axis: for logarithmic axes and for bytes, whose round numbers are powers of two.
  // Bokeh's own ticks divide less than two decades evenly, and so crowd at the upper end.
  const MOST = 12; // labels on an axis
  const powers = (start, end, base) => {
    const first = Math.ceil(Math.log(start) / Math.log(base) - 1e-9), last = Math.floor(Math.log(end) / Math.log(base) + 1e-9);
    return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => first + i);
  };
  const even = (start, end, step) => {
    const first = Math.ceil(start / step - 1e-9), last = Math.floor(end / step + 1e-9);
    return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => (first + i) * step);
  };
  const roundStep = (rough, binary) => {
    if (binary) return 2 ** Math.ceil(Math.log2(rough));
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].find((step) => step * power >= rough) * power;
  };
  const ticks = (unit, log, start, end, floor = 0, name = "") => {
    const found = round(unit, log, start, end);
    const seen = floor && floor >= start * (1 - 1e-9) && floor <= end;
    const major = seen ? [floor, ...found.major.filter((at) => at > floor * (1 + 1e-9))] : found.major;
    return { ...found, major: name ? thinned(major, unit, log, start, end, floor, name) : major };
  };
  // Every second, third, … of the ticks of an x axis, so that labels do not collide.
  const thinned = (major, unit, log, start, end, floor, name) => {
    const room = across(name), place = (at) => room * (log ? Math.log(at / start) / Math.log(end / start) : (at - start) / (end - start));
    const labels = major.map((at) => [place(at), width(tick(unit, at, false, major, floor)) / 2 + GAP / 2]);
    const fits = (step) => labels.filter((_, i) => i % step === 0).every(([at, half], i, kept) => !i || at - half >= kept[i - 1][0] + kept[i - 1][1]);
    for (let step = 1; step < major.length; step++) if (fits(step)) return major.filter((_, i) => i % step === 0);
    return major.slice(0, 1);
  };
  const GAP = 14; // pixels between two labels
  const pen = document.createElement("canvas").getContext("2d");
  const width = (said) => { pen.font = "12px helvetica, sans-serif"; return pen.measureText(said).width; };
  // The width of a plot in pixels, without its borders, also before it is drawn.
  const across = (name) => Math.max((document.querySelector(`[id='figure-${name}'] .plot`)?.clientWidth ?? 1e4) - 110, 50);
  const round = (unit, log, start, end) => {
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
  };
  return { text, tick, ticks, clock, count, along, percent, width };
})();
