// A plot on a canvas: its ranges, its frame, and all that is drawn in and around it. Positions are in pixels of the page.
"use strict";
iosonar.Plot = (() => {
  const HEIGHT = 360, LEFT = 92, RIGHT = 18, TOP = 28, NAMES = 14, BOTTOM = 48, MARK = 3.5;
  const DASHES = { solid: [], dashed: [7, 4], dotted: [2, 3] };
  const LABEL = "13px helvetica, sans-serif";
  const element = (name, text = "") => { const made = document.createElement(name); made.textContent = text; return made; };

  // The pixel of a value. Zero is below a logarithmic axis, by its length.
  function scale({ log }, { low, high }, from, length) {
    if (!log) { const each = length / (high - low); return (value) => from + (value - low) * each; }
    const first = Math.log(low), each = length / (Math.log(high) - first);
    return (value) => value > 0 ? from + (Math.log(value) - first) * each : from - length;
  }

  class Plot {
    constructor(described, host, ranges) {
      Object.assign(this, described, { host, hidden: new Set(), held: false, canvas: host.appendChild(element("canvas")) });
      this.pen = this.canvas.getContext("2d");
      this.timed = this.x.unit === "time";
      const own = () => ({ low: this.x.low, high: this.x.high, plots: [] }), key = `${this.x.low} ${this.x.high}`;
      if (this.timed && !ranges.has(key)) ranges.set(key, own());
      // Plots over the same time have the same object.
      this.xRange = this.timed ? ranges.get(key) : own();
      this.xRange.plots.push(this);
      this.yRange = { low: this.y.low, high: this.y.high };
      this.rules = this.layers.filter((layer) => layer.kind === "rule");
      this.clouds = this.layers.filter((layer) => layer.kind === "cloud");
      this.curves = this.layers.filter((layer) => layer.kind === "line" || layer.kind === "steps");
    }

    async unpack() {
      if (this.packed === undefined) return;
      const { packed } = this;
      delete this.packed;
      await Plot.fill(this.layers, packed);
      this.ready = true;
    }

    // Replaces the packed numbers of layers by arrays.
    static async fill(layers, packed) {
      const bytes = packed instanceof Uint8Array ? packed : await iosonar.layers.unpack(packed);
      for (const layer of layers)
        if (layer.kind === "cloud") for (const part of layer.parts) part.levels = part.levels.map((level) => iosonar.clouds.cells(level, bytes));
        else if (layer.kind !== "rule") {
          for (const name of ["x", "y", "edges"]) if (name in layer) layer[name] = iosonar.layers.numbers(layer[name], bytes);
          layer.ordered = iosonar.layers.ordered(layer.x ?? layer.edges);
        }
    }

    // Sets ranges that the reader chose: y is kept until it is the whole again.
    choose({ x, y }) {
      if (x) Object.assign(this.xRange, x);
      if (y) this.held = y.low !== this.y.low || y.high !== this.y.high;
      if (y) Object.assign(this.yRange, y);
      for (const plot of x ? this.xRange.plots : [this]) plot.changed();
    }

    // Resets the plot and those over the same time.
    reset() {
      Object.assign(this.xRange, { low: this.x.low, high: this.x.high });
      for (const plot of this.xRange.plots) {
        Object.assign(plot.yRange, { low: plot.y.low, high: plot.y.high });
        plot.held = false;
        plot.changed();
      }
    }

    changed() { this.stale = true; iosonar.later(this); }

    toggle(label, shown) {
      if (shown) this.hidden.delete(label); else this.hidden.add(label);
      this.changed();
    }

    // Fits the y range of a plot over time to what is seen, unless the reader chose it.
    fit() {
      if (!this.timed || this.clouds.length || this.held) return;
      const { log, low: y0, high: y1 } = this.y, whole = this.xRange.low <= this.x.low && this.xRange.high >= this.x.high && !this.hidden.size;
      let low = Infinity, high = -Infinity;
      if (!whole) for (const layer of this.seen()) {
        const [least, most] = iosonar.layers.extent(layer, this.xRange, log ? y0 : -Infinity);
        low = Math.min(low, least); high = Math.max(high, most);
      }
      if (high === -Infinity) Object.assign(this.yRange, { low: y0, high: y1 });
      else Object.assign(this.yRange, log ? { low: low / 1.3, high: high * 1.3 } : { low: Math.min(y0, low), high: high > 0 ? high * 1.06 : y1 });
    }

    seen() { return this.curves.filter((layer) => !this.hidden.has(layer.label)); }

    // The places of frame and ticks in a plot of that width.
    lay(width) {
      const top = this.rules.some((rule) => "x" in rule) ? TOP + NAMES : TOP, height = HEIGHT - top - BOTTOM;
      const py = this.py = scale(this.y, this.yRange, top + height, -height);
      this.yTicks = iosonar.axisTicks(this.y, this.yRange, py);
      const room = width * 0.4, widest = Math.max(0, ...this.yTicks.major.map(([, said]) => iosonar.width(said)));
      const left = Math.round(Math.min(Math.max(LEFT, widest + 38), room)), across = Math.max(width - left - RIGHT, 50);
      this.size = { width, height: HEIGHT };
      this.frame = { left, top, width: across, height };
      this.px = scale(this.x, this.xRange, left, across);
      this.xTicks = iosonar.axisTicks(this.x, this.xRange, this.px, across);
    }

    // Draws the plot with so many dots of the screen for a pixel.
    draw(dots = devicePixelRatio, width = this.host.clientWidth) {
      this.fit();
      this.lay(Math.max(width, 200));
      const { canvas, size } = this, wide = Math.round(size.width * dots), high = Math.round(size.height * dots);
      if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
      Object.assign(canvas.style, { width: `${size.width}px`, height: `${size.height}px` });
      this.pen.setTransform(dots, 0, 0, dots, 0, 0);
      this.paint(this.pen);
      this.nameRules();
      iosonar.legend.follow(this);
      this.stale = false;
    }

    paint(pen) {
      const { frame: { left, top, width, height }, size } = this, { paper, plot, grid, roles } = this.colours = iosonar.colours();
      pen.fillStyle = paper; pen.fillRect(0, 0, size.width, size.height);
      pen.fillStyle = plot; pen.fillRect(left, top, width, height);
      pen.save();
      pen.beginPath(); pen.rect(left, top, width, height); pen.clip();
      pen.strokeStyle = grid; pen.lineWidth = 1;
      for (const [at] of this.xTicks.major) this.straight(pen, "x", this.px(at));
      for (const [at] of this.yTicks.major) this.straight(pen, "y", this.py(at));
      pen.restore();
      this.axes(pen);
      // A line may lie on an axis.
      pen.save();
      pen.beginPath(); pen.rect(left, top, width, height); pen.clip();
      // Below the data: a rule must not hide the request that it points at.
      pen.lineWidth = 1; pen.setLineDash([6, 3]);
      for (const rule of this.rules) if ("x" in rule) { pen.strokeStyle = roles[rule.role]; this.straight(pen, "x", this.px(rule.x)); }
      pen.setLineDash([]);
      iosonar.requests?.paint(this, pen);
      for (const layer of this.layers)
        if (layer.kind === "cloud") this.cloud(pen, layer);
        else if (layer.kind !== "rule" && !this.hidden.has(layer.label)) this.curve(pen, layer, roles[layer.role]);
      for (const rule of this.rules) if ("y" in rule) this.limit(pen, rule);
      pen.restore();
    }

    // A line across the frame, on whole pixels.
    straight(pen, axis, pixel) {
      const { left, top, width, height } = this.frame, at = Math.round(pixel) + (pen.lineWidth % 2 === 1 ? 0.5 : 0);
      pen.beginPath();
      if (axis === "x") { pen.moveTo(at, top); pen.lineTo(at, top + height); } else { pen.moveTo(left, at); pen.lineTo(left + width, at); }
      pen.stroke();
    }

    cloud(pen, layer) {
      const { pixels, x, y } = layer.image = iosonar.clouds.image(this, layer, this.colours);
      const painted = new OffscreenCanvas(pixels.width, pixels.height);
      painted.getContext("2d").putImageData(pixels, 0, 0);
      pen.imageSmoothingEnabled = false;
      const left = this.px(x[0]), top = this.py(y[1]);
      pen.drawImage(painted, left, top, this.px(x[1]) - left, this.py(y[0]) - top);
    }

    curve(pen, layer, colour) {
      const { top, height, width } = this.frame, base = this.y.log ? top + height : this.py(0);
      for (const { stroke, sections } of iosonar.layers.shapes(layer, this.xRange, this.px, this.py, width)) {
        const path = new Path2D(), area = new Path2D();
        for (const section of sections) {
          path.moveTo(section[0], section[1]);
          if (layer.fill) { area.moveTo(section[0], base); area.lineTo(section[0], section[1]); }
          for (let i = 2; i < section.length; i += 2) { path.lineTo(section[i], section[i + 1]); if (layer.fill) area.lineTo(section[i], section[i + 1]); }
          if (layer.fill) area.lineTo(section[section.length - 2], base);
        }
        // Square caps keep a bin visible that is narrower than a pixel.
        Object.assign(pen, { strokeStyle: colour, fillStyle: colour, lineWidth: layer.width, lineJoin: "round", lineCap: stroke === "solid" ? "square" : "butt" });
        pen.globalAlpha = layer.alpha ?? 1; pen.setLineDash(DASHES[stroke]); pen.stroke(path);
        pen.globalAlpha = layer.fill ?? 1; pen.setLineDash([]); if (layer.fill) pen.fill(area);
        pen.globalAlpha = 1;
        if (layer.marks) for (const section of sections)
          for (let i = 0; i < section.length; i += 2) { pen.beginPath(); pen.arc(section[i], section[i + 1], MARK, 0, 7); pen.fill(); }
      }
      pen.lineCap = "butt";
    }

    // A limit with its name, on a background so that lines do not cross it.
    limit(pen, { y, role, label, left: isLeft }) {
      const { left, width } = this.frame, { roles, plot } = this.colours, at = this.py(y), wide = iosonar.width(label);
      pen.strokeStyle = pen.fillStyle = roles[role]; pen.lineWidth = 1.5;
      this.straight(pen, "y", at);
      const start = isLeft ? left + 8 : left + width - 8 - wide;
      pen.globalAlpha = 0.75; pen.fillStyle = plot; pen.fillRect(start, at - 15, wide, 14);
      pen.globalAlpha = 1; pen.fillStyle = roles[role];
      this.write(pen, label, start, at - 3);
    }

    write(pen, said, x, y, align = "left", baseline = "alphabetic", font = iosonar.FONT) {
      Object.assign(pen, { font, textAlign: align, textBaseline: baseline });
      pen.fillText(said, x, y);
    }

    axes(pen) {
      const { frame: { left, top, width, height }, size, colours: { ink, soft_ink: soft, grid } } = this, bottom = top + height;
      pen.lineWidth = 1; pen.setLineDash([]); pen.strokeStyle = grid;
      pen.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
      pen.strokeStyle = soft;
      pen.beginPath();
      pen.moveTo(left + 0.5, top); pen.lineTo(left + 0.5, bottom + 0.5); pen.lineTo(left + width, bottom + 0.5);
      const mark = (at, inside, outside, across) => across ? (pen.moveTo(Math.round(at) + 0.5, bottom - inside), pen.lineTo(Math.round(at) + 0.5, bottom + outside))
        : (pen.moveTo(left + inside, Math.round(at) + 0.5), pen.lineTo(left - outside, Math.round(at) + 0.5));
      const within = (at, from, to) => at >= from - 0.6 && at <= to + 0.6;
      const x = this.xTicks.major.map(([at, said]) => [this.px(at), said]).filter(([at]) => within(at, left, left + width));
      const y = this.yTicks.major.map(([at, said]) => [this.py(at), said]).filter(([at]) => within(at, top, bottom));
      for (const [at] of x) mark(at, 2, 6, true);
      for (const [at] of y) mark(at, 2, 6, false);
      for (const at of this.xTicks.minor.map(this.px)) if (within(at, left, left + width)) mark(at, 0, 4, true);
      for (const at of this.yTicks.minor.map(this.py)) if (within(at, top, bottom)) mark(at, 0, 4, false);
      pen.stroke();
      pen.fillStyle = ink;
      for (const [at, said] of x) this.write(pen, said, Math.min(at, size.width - iosonar.width(said) / 2), bottom + 9, "center", "top");
      for (const [at, said] of y) this.write(pen, shortened(said, left - 34), left - 9, at, "right", "middle");
      this.write(pen, this.x.title, left + width / 2, bottom + 30, "center", "top", LABEL);
      pen.save();
      pen.translate(8, top + height / 2); pen.rotate(-Math.PI / 2);
      this.write(pen, this.y.title, 0, 0, "center", "top", LABEL);
      pen.restore();
    }

    // Names of vertical rules are above the frame, in two lines, each where it overlaps no other; none outside the range.
    nameRules() {
      const { left: edge, top, width } = this.frame, taken = [[], []];
      for (const layer of this.rules.filter((rule) => "x" in rule)) {
        const at = this.px(layer.x) - edge, own = iosonar.width(layer.label), left = Math.max(Math.min(at - own / 2, width - own), 0);
        const row = taken.findIndex((line) => line.every(([from, to]) => left > to + 6 || left + own + 6 < from));
        layer.name ??= this.host.appendChild(element("span", layer.label));
        layer.name.className = "rule-name";
        layer.name.style.color = `var(--role-${layer.role.replaceAll(" ", "-")})`;
        layer.name.hidden = !(at >= 0 && at <= width && row >= 0);
        layer.place = layer.name.hidden ? null : { left: edge + left, top: top - 16 - 15 * row };
        if (layer.name.hidden) continue;
        taken[row].push([left, left + own]);
        Object.assign(layer.name.style, { left: `${layer.place.left}px`, top: `${layer.place.top}px` });
      }
    }
  }

  function shortened(said, room) {
    if (iosonar.width(said) <= room) return said;
    let kept = said.length;
    while (kept > 1 && iosonar.width(`${said.slice(0, kept)}…`) > room) kept--;
    return `${said.slice(0, kept)}…`;
  }
  return Plot;
})();
