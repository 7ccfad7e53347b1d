// Numbers as people read them, as iosonar/units.py writes them.
"use strict";
window.iosonar = (() => {
  const digits = (value, n) => {
    if (!isFinite(value)) return "–";
    if (value === 0) return "0";
    const decimals = Math.min(Math.max(n - 1 - Math.floor(Math.log10(Math.abs(value))), 0), 12);
    const text = value.toFixed(decimals);
    return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
  };
  const scaled = (value, steps, n) => {
    for (const [size, unit] of steps) if (Math.abs(value) >= size * (1 - 0.5 * 10 ** -n)) return `${digits(value / size, n)}${unit}`;
    return null;
  };
  const TIMES = [[1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]];
  const COUNTS = [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e4, " k"]];
  const BYTES = [[2 ** 40, " TiB"], [2 ** 30, " GiB"], [2 ** 20, " MiB"], [2 ** 10, " KiB"]];
  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const count = (value, n) => {
    if (value !== 0 && Math.abs(value) < 1e-3) {
      const power = Math.floor(Math.log10(Math.abs(value)));
      return `${digits(value / 10 ** power, n)} × 10⁻${[...String(-power)].map((digit) => RAISED[digit]).join("")}`;
    }
    if (Math.abs(value) < 1e4) return digits(value, Number.isInteger(value) ? 4 : n);
    for (const [size, unit] of [...COUNTS.slice(0, 3), [1e3, " k"]]) if (Math.abs(value) >= size) return digits(value / size, n) + unit;
    return digits(value, n);
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
    if (unit === "s") return value === 0 ? "0 s" : scaled(value, TIMES, n) ?? `${digits(value * 1e9, n)} ns`;
    if (unit === "time") return `${digits(value, 6)} s`;
    if (unit === "bytes") return scaled(value, BYTES, n) ?? `${digits(value, n)} B`;
    if (unit === "odds") return `${digits(100 - 100 / value, 7)} %`;
    if (unit === "%") return `${digits(value, n)} %`;
    return count(value, n) + (["IO/s", "sectors/s", "sectors", "GiB"].includes(unit) ? ` ${unit}` : "");
  };
  const tick = (unit, value, long) => {
    if (unit === "time") return long ? clock(value) : digits(value, 9);
    if (["IO/s", "sectors/s", "sectors", "GiB"].includes(unit)) return count(value, 6);
    return text(unit, value, 6);
  };
  // Where an axis has its ticks, of what is seen of it: for logarithmic ones and for bytes, whose round numbers are powers
  // of two. Bokeh's own divide less than two decades evenly, so that ticks crowd at the upper end.
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
  const ticks = (unit, log, start, end) => {
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
  return { text, tick, ticks, clock, count };
})();
