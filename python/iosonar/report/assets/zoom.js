// What a reader does with a plot: zoom in a box, pan, zoom with the wheel and with keys, reset, save as PNG.
"use strict";
iosonar.zoom = (() => {
  const LEAST = 5, WHEEL = 600; // pixels of a box; of a wheel's turn for a factor of e

  // A range that is zoomed by a factor around a share of it, and moved by a share; within the whole axis, or as far as it was.
  function moved({ low, high }, { log, low: first, high: last }, factor, around = 0.5, shift = 0) {
    const to = log ? Math.log : (v) => v, back = log ? Math.exp : (v) => v;
    const a = to(low), b = to(high), start = to(Math.min(first, low)), end = to(Math.max(last, high));
    const length = Math.min((b - a) * factor, end - start), middle = a + (b - a) * around;
    const from = Math.min(Math.max(middle - length * around + shift * (b - a), start), end - length);
    const exact = (v, at, whole) => v === at ? whole : back(v);
    const found = { low: exact(from, start, Math.min(first, low)), high: exact(from + length, end, Math.max(last, high)) };
    // So near that numbers have no more digits.
    return found.high - found.low > Math.max(Math.abs(found.low), Math.abs(found.high)) * 1e-13 ? found : { low, high };
  }

  function attach(plot) {
    const { host, host: { parentElement: around } } = plot, box = host.appendChild(document.createElement("div"));
    let mode = "zoom", start = null;
    box.className = "box"; box.hidden = true;
    const shares = (event) => {
      const edge = host.getBoundingClientRect(), { left, top, width, height } = plot.frame;
      return { x: (event.clientX - edge.left - left) / width, y: 1 - (event.clientY - edge.top - top) / height };
    };
    const inside = ({ x, y }) => x >= 0 && x <= 1 && y >= 0 && y <= 1;
    const clip = (share) => Math.min(Math.max(share, 0), 1);
    const part = (axis, range, from, to) => moved(range, axis, to - from, 0, from);

    host.addEventListener("pointerdown", (event) => {
      const at = shares(event);
      if (event.button || event.pointerType === "touch" || !inside(at)) return;
      start = { at, x: { ...plot.xRange }, y: { ...plot.yRange } };
      host.setPointerCapture(event.pointerId);
    });
    host.addEventListener("pointermove", (event) => {
      if (!start) return;
      const at = shares(event), { left, top, width, height } = plot.frame;
      if (mode === "pan") {
        plot.choose({ x: moved(start.x, plot.x, 1, 0, start.at.x - at.x), y: moved(start.y, plot.y, 1, 0, start.at.y - at.y) });
        return;
      }
      const [x0, x1] = [start.at.x, clip(at.x)].sort((a, b) => a - b), [y0, y1] = [start.at.y, clip(at.y)].sort((a, b) => a - b);
      start.box = [x0, x1, y0, y1];
      box.hidden = false;
      Object.assign(box.style, { left: `${left + x0 * width}px`, top: `${top + (1 - y1) * height}px`, width: `${(x1 - x0) * width}px`, height: `${(y1 - y0) * height}px` });
    });
    const end = (event) => {
      const drawn = event.type === "pointerup" && start?.box;
      start = null; box.hidden = true;
      if (!drawn) return;
      const [x0, x1, y0, y1] = drawn, wide = (x1 - x0) * plot.frame.width >= LEAST, high = (y1 - y0) * plot.frame.height >= LEAST;
      const chosen = { x: wide ? part(plot.x, plot.xRange, x0, x1) : null, y: high ? part(plot.y, plot.yRange, y0, y1) : null };
      if (!wide && !high) return;
      if (mode === "select") iosonar.requests.select(plot, chosen); else plot.choose(chosen);
    };
    host.addEventListener("pointerup", end);
    host.addEventListener("pointercancel", end);
    host.addEventListener("dblclick", () => plot.reset());
    host.addEventListener("wheel", (event) => {
      const at = shares(event);
      if (!event.ctrlKey || !inside(at)) return;
      event.preventDefault();
      const factor = Math.exp((event.deltaMode ? event.deltaY * 30 : event.deltaY) / WHEEL);
      plot.choose({ x: moved(plot.xRange, plot.x, factor, at.x), y: moved(plot.yRange, plot.y, factor, at.y) });
    }, { passive: false });
    host.addEventListener("keydown", (event) => key(plot, event));

    const tools = around.querySelector(".tools");
    tools?.addEventListener("click", ({ target }) => {
      const { tool } = target.dataset;
      if (tool === "reset") plot.reset();
      if (tool === "save") save(plot);
      if (!["zoom", "pan", "select"].includes(tool)) return;
      mode = host.dataset.mode = tool;
      for (const each of tools.querySelectorAll("[aria-pressed]")) each.setAttribute("aria-pressed", each === target);
    });
  }

  function key(plot, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const fine = event.shiftKey ? 0.05 : 0.25;
    const x = (factor, shift) => plot.choose({ x: moved(plot.xRange, plot.x, factor, 0.5, shift) });
    const y = (factor, shift) => plot.choose({ y: moved(plot.yRange, plot.y, factor, 0.5, shift) });
    const actions = {
      "+": () => x(0.5), "=": () => x(0.5), "-": () => x(2), "[": () => y(0.5), "]": () => y(2), 0: () => plot.reset(), s: () => save(plot),
      ArrowLeft: () => x(1, -fine), ArrowRight: () => x(1, fine), ArrowUp: () => y(1, fine), ArrowDown: () => y(1, -fine),
    };
    const action = actions[event.key];
    if (action) { event.preventDefault(); action(); } else iosonar.requests?.key(plot, event);
  }

  // The picture of a plot with its title, its series, its names of rules and its stamps.
  function picture(plot, dots = Math.max(devicePixelRatio, 2)) {
    const { size: { width, height }, frame } = plot, box = plot.host.closest("figure"), above = 62;
    const canvas = document.createElement("canvas"), pen = canvas.getContext("2d"), style = getComputedStyle(document.body);
    Object.assign(canvas, { width: width * dots, height: (height + above) * dots });
    pen.setTransform(dots, 0, 0, dots, 0, above * dots);
    plot.paint(pen);
    const { paper, ink, soft_ink: soft, roles } = plot.colours;
    for (const { place, label, role } of plot.rules) if (place) { pen.fillStyle = roles[role]; plot.write(pen, label, place.left, place.top, "left", "top"); }
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.fillStyle = paper; pen.fillRect(0, 0, width, above);
    pen.fillStyle = ink; plot.write(pen, box.querySelector("h3").textContent, 8, 8, "left", "top", `600 16px ${style.fontFamily}`);
    pen.fillStyle = soft; plot.write(pen, box.querySelector(".of").textContent, 8, 30, "left", "top");
    let at = 8;
    for (const layer of plot.layers.flatMap((each) => each.parts ?? (each.kind === "rule" ? [] : [each])).filter((each) => !plot.hidden.has(each.label))) {
      pen.fillStyle = roles[layer.role]; pen.fillRect(at, 50, 12, 8);
      pen.fillStyle = ink; plot.write(pen, layer.label, at + 16, 48, "left", "top");
      at += 34 + iosonar.width(layer.label);
    }
    const stamps = [...plot.host.querySelectorAll(".stamp")];
    stamps.forEach((stamp, number) => {
      pen.save();
      pen.globalAlpha = 0.33; pen.fillStyle = getComputedStyle(stamp).color;
      pen.translate(frame.left + frame.width / 2, above + frame.top + frame.height * (number + 1) / (stamps.length + 1)); pen.rotate(-0.14);
      const big = Math.min(74, 1.4 * frame.width / stamp.textContent.length);
      plot.write(pen, stamp.textContent, 0, 0, "center", "middle", `800 ${big}px ${style.fontFamily}`);
      pen.restore();
    });
    return canvas;
  }

  function save(plot) {
    picture(plot).toBlob((blob) => {
      const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `${plot.name}.png` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    });
  }
  return { attach, moved, picture };
})();
