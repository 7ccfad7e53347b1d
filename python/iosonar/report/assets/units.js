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
  return { text, tick, clock, count };
})();
