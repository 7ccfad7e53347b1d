// The findings of the run, once they are known: each leads to the place that shows it.
"use strict";
(() => {
  const box = document.getElementById("found");
  const element = (name, text = "") => { const made = document.createElement(name); made.textContent = text; return made; };

  function row({ number, title, severity, seen, place }) {
    const made = element("div"), link = element("a", "Show it");
    made.className = `finding ${severity}`;
    link.href = `#${place}`;
    // The same place again, after the reader moved away.
    link.addEventListener("click", () => { if (location.hash === link.hash) dispatchEvent(new HashChangeEvent("hashchange")); });
    made.append(element("b", `${number} ${title}`), ` ${seen} `, link);
    return made;
  }

  async function show() {
    const { findings } = await iosonar.ask("findings");
    if (!findings.length) return;
    box.append(element("h2", "Findings"), ...findings.map(row));
    box.hidden = false;
    document.querySelector("main > section").before(box);
  }
  if (box.dataset.finds === "yes") iosonar.found = show().catch(() => {});
})();
