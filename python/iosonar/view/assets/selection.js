// The panel of what a box selects: how many, the slowest, what was in flight beside the slowest, and the rows as a file.
"use strict";
(() => {
  const { element, kinds, value } = iosonar.requests, panel = document.getElementById("selection");
  const content = panel.querySelector(".content"), COLUMNS = ["issued", "latency", "delay", "offset", "size"];
  let plot = null, chosen = null, opened = null;

  iosonar.requests.select = async (of, ranges) => {
    plot = of;
    chosen = { x: ranges.x ?? { ...of.xRange }, y: ranges.y ?? { ...of.yRange } };
    const parameters = iosonar.windowOf(of, chosen), mine = opened = {};
    panel.hidden = false;
    content.replaceChildren(element("p", "Reading …"));
    let nodes;
    try { nodes = described(await iosonar.ask("selection", parameters), parameters); } catch (error) { nodes = [element("p", error.message)]; }
    if (mine !== opened) return;
    content.replaceChildren(...nodes);
    panel.querySelector("button").focus({ preventScroll: true });
    panel.dataset.ready = "yes";
  };

  function described(found, parameters) {
    const share = iosonar.percent(found.share), many = (n) => iosonar.text("requests", n);
    const facts = [...Object.entries(found.kinds).map(([kind, n]) => `${many(n)} ${kinds[kind].toLowerCase()}${n === 1 || kind === "failed" ? "" : "s"}`), iosonar.text("bytes", found.bytes)];
    if (found.mean_latency !== null) facts.push(`mean latency ${iosonar.text("s", found.mean_latency)}`);
    const nodes = [element("p", `${many(found.count)} requests, ${share} of all: ${facts.join(", ")}.`)];
    if (found.slowest.length) nodes.push(element("h3", "Slowest"), table(found.slowest));
    if (found.beside) {
      const { beside } = found;
      nodes.push(element("h3", "In flight beside the slowest"), element("p", `${many(beside.count)} requests, ${many(beside.before)} of them issued before it.`));
      if (beside.slowest.length) nodes.push(table(beside.slowest));
    }
    nodes.push(element("h3", "Take it out"));
    if (found.exports && found.count) {
      const links = element("p");
      for (const [name, text] of [["rows.csv", "Rows as CSV"], ["selected.load.parquet", "As a load, to replay it"]])
        links.append(Object.assign(element("a", text), { href: `${name}?${new URLSearchParams(parameters)}`, download: name }), " ");
      nodes.push(links);
    }
    nodes.push(element("p", "The same rows with iosonar sql:"), element("code", `FROM requests WHERE ${found.sql}`));
    return nodes;
  }

  function table(rows) {
    const made = element("table"), head = element("tr"), scroll = element("div");
    head.append(...["", ...COLUMNS, ""].map((name) => element("th", name)));
    made.append(head, ...rows.map((row) => {
      const line = element("tr"), go = element("button", "Show");
      go.type = "button";
      go.addEventListener("click", () => show(row));
      const last = element("td");
      last.append(go);
      line.append(element("td", kinds[row.kind]), ...COLUMNS.map((name) => element("td", name === "offset" ? iosonar.text("bytes", row[name], 6) : value(name, row[name]))), last);
      return line;
    }));
    scroll.className = "scroll";
    scroll.append(made);
    return scroll;
  }

  // Zooms to a request: its time in flight, and as much before and after.
  function show({ issued, completed, due }) {
    const from = Math.min(due, issued), to = completed ?? issued, around = Math.max((to - from) / 2, 5e-6), { low, high } = plot.x;
    plot.choose({ x: { low: Math.max(from - around, low), high: Math.min(to + around, high) } });
  }

  function close() {
    panel.hidden = true;
    delete panel.dataset.ready;
    opened = null;
    plot?.host.focus({ preventScroll: true });
  }

  panel.addEventListener("click", ({ target }) => {
    if (target.dataset.do === "close") close();
    if (target.dataset.do === "zoom") plot.choose(chosen);
  });
  addEventListener("keydown", (event) => { if (event.key === "Escape" && !panel.hidden) close(); });
})();
