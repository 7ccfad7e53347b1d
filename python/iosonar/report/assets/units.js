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
  return { text, tick, clock, count, along, percent };
})();
