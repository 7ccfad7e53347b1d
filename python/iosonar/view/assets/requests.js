// Single requests: bars from issue to completion beneath the dots, the one under the pointer or chosen by keys, and its columns.
"use strict";
iosonar.requests = (() => {
  const REACH = 9, WAIT_MS = 120; // pixels; until all columns are asked for
  const kinds = { read: "Read", write: "Write", other: "Other operation", failed: "Failed" };
  const element = (name, text = "") => { const made = document.createElement(name); made.textContent = text; return made; };
  const columns = new Map();
  let shown = null, asked = 0;

  // The index of each visible bar, with the pixels of its ends.
  function visible(plot) {
    const { bars, frame: { left, width, top, height }, px, py, hidden } = plot, found = [];
    if (!bars) return found;
    for (let i = 0; i < bars.row.length; i++) {
      if (bars.y[i] === null || hidden.has(bars.kinds[bars.kind[i]].label)) continue;
      const value = plot.y.floor ? Math.max(bars.y[i], plot.y.low) : bars.y[i];
      const from = px(bars.begin[i]), to = bars.end[i] === null ? from : px(bars.end[i]), y = py(value);
      if (to < left || from > left + width || y < top - 1 || y > top + height + 1) continue;
      found.push({ i, from, to, y });
    }
    return found;
  }

  function paint(plot, pen) {
    const { bars, colours: { roles, ink } } = plot;
    if (!bars) return;
    pen.setLineDash([]); pen.lineCap = "butt";
    for (const { i, from, to, y } of visible(plot)) {
      const isChosen = bars.row[i] === shown?.row;
      pen.globalAlpha = isChosen ? 1 : 0.45; pen.lineWidth = isChosen ? 3 : 1.5;
      pen.strokeStyle = isChosen ? ink : roles[bars.kinds[bars.kind[i]].role];
      pen.beginPath(); pen.moveTo(from, y); pen.lineTo(Math.max(to, from + 1), y); pen.stroke();
      const at = plot.name === "latency.completed" ? to : from;
      pen.fillStyle = pen.strokeStyle; pen.globalAlpha = 1;
      pen.beginPath(); pen.arc(at, y, isChosen ? 5 : 3, 0, 7); pen.fill();
    }
    pen.globalAlpha = 1;
  }

  // Adds the request under the pointer, in shares of the frame, to the tip.
  function hover(plot, { x, y }, tip) {
    const { left, top, width, height } = plot.frame, at = left + x * width, up = top + (1 - y) * height;
    let best = null, least = REACH;
    for (const each of visible(plot)) {
      const beside = at < each.from ? each.from - at : at > each.to ? at - each.to : 0, far = Math.hypot(beside, each.y - up);
      if (far < least || far === least && best && each.from > best.from) { best = each; least = far; }
    }
    if (!best) { show(plot, null); return; }
    const row = plot.bars.row[best.i];
    show(plot, row);
    tip.replaceChildren(...described(row));
  }

  function show(plot, row) {
    if (shown?.row === row && shown?.plot === plot || row === null && !shown) return;
    const before = shown?.plot;
    shown = row === null ? null : { plot, row };
    for (const each of new Set([before, plot])) if (each) { each.stale = true; each.draw(); }
    const mine = ++asked;
    if (row !== null && !columns.has(row)) setTimeout(async () => {
      if (mine !== asked) return;
      columns.set(row, await iosonar.ask("request", { row }).catch(() => null));
      if (mine === asked) fill(row);
    }, WAIT_MS);
  }

  // Fills the tip, which grows when the columns of its request come, and stays within the window.
  function fill(row) {
    const tip = document.getElementById("tip");
    tip.replaceChildren(...described(row));
    tip.style.top = `${Math.max(Math.min(parseFloat(tip.style.top), innerHeight - tip.offsetHeight - 8), 8)}px`;
  }

  const TEXTS = { due: "time", issued: "time", completed: "time", latency: "s", delay: "s", offset: "bytes", size: "bytes" };
  const value = (name, number) => number === null ? "–" : TEXTS[name] === "time" ? `${number.toFixed(6)} s` : name === "offset" ? `${iosonar.text("bytes", number)} (byte ${number})` : iosonar.text(TEXTS[name], number, 3);
  const HIDDEN = new Set(["scheduled_ns", "issued_ns", "completed_ns", "latency_ns", "delay_ns", "sector", "sectors", "bytes", "op", "at_ns", "source_sector", "bytes_done"]);
  // Columns that are said only if they have another value.
  const USUAL = { flags: "0", errno: "0", pushed_back: "False", widened: "False" };

  // The lines of a request: text only, whatever a trace has for names.
  function described(row) {
    const found = columns.get(row);
    if (!found) return [element("b", "Request")];
    const { columns: all } = found, own = Object.fromEntries(all);
    const lines = [["operation", own.op ?? kinds[found.kind]], ...Object.keys(TEXTS).map((name) => [name, value(name, found[name])]), ...all.filter(([name, text]) => !HIDDEN.has(name) && name !== "request" && USUAL[name] !== text)];
    return [element("b", `Request ${own.request ?? found.place}`), ...lines.map(([name, text]) => {
      const line = element("div");
      line.append(element("span", name.replaceAll("_", " ")), element("em", text));
      return line;
    })];
  }

  // Keys of a plot: . and , go to the next and previous request; b selects what is visible.
  function key(plot, event) {
    if (event.key === "b") { event.preventDefault(); iosonar.requests.select(plot, {}); return; }
    if (event.key !== "." && event.key !== ",") return;
    const found = visible(plot).sort((a, b) => a.from - b.from), now = found.findIndex(({ i }) => plot.bars.row[i] === shown?.row);
    const next = found[now < 0 ? 0 : Math.min(Math.max(now + (event.key === "." ? 1 : -1), 0), found.length - 1)];
    if (!next) return;
    event.preventDefault();
    const row = plot.bars.row[next.i], tip = document.getElementById("tip"), edge = plot.host.getBoundingClientRect();
    show(plot, row);
    Object.assign(tip.style, { left: `${Math.min(edge.left + Math.max(next.from, 0) + 14, innerWidth - 320)}px`, top: `${edge.top + next.y + 10}px` });
    tip.hidden = false;
    fill(row);
  }

  return { paint, hover, key, value, kinds, element, select: () => {} };
})();
