// Panels with tabs, and the button for light and dark.

/** A tab for each panel, of which one is shown. */
class Tabs {
  constructor(name, panels) {
    this.panels = panels.filter(Boolean);
    this.bar = element("div", { role: "tablist", "aria-label": name, keydown: (event) => this.key(event) });
    this.root = element("section", { class: `panel ${name.toLowerCase()}` }, this.bar);
    this.panels.forEach((panel, n) => {
      const id = `tab-${name}-${n}`.toLowerCase();
      panel.tab = element("button", { role: "tab", id, "aria-controls": `${id}-panel`, click: () => this.show(n) }, panel.name);
      panel.body = element("div", { role: "tabpanel", id: `${id}-panel`, "aria-labelledby": id, hidden: true }, panel.root);
      this.bar.append(panel.tab);
      this.root.append(panel.body);
    });
    this.show(0, false);
  }

  show(number, draw = true) {
    this.current = number;
    this.panels.forEach((panel, n) => {
      panel.tab.setAttribute("aria-selected", n === number ? "true" : "false");
      panel.tab.tabIndex = n === number ? 0 : -1;
      panel.body.hidden = n !== number;
    });
    if (draw) this.panels[number].update?.(true);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (this.current + step + this.panels.length) % this.panels.length;
    this.show(next);
    this.panels[next].tab.focus();
  }

  update() {
    this.panels[this.current].update?.(true);
  }
}

/** A button for light, dark, or what the system says; ``changed`` is called after either. */
function themeButton(changed = () => {}) {
  const names = ["auto", "light", "dark"];
  let current = 0;
  const button = element("button", { "aria-label": "Theme: auto", title: "Theme", click: () => {
    current = (current + 1) % 3;
    document.documentElement.dataset.theme = names[current];
    button.setAttribute("aria-label", `Theme: ${names[current]}`);
    changed();
  } }, "◐");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  return button;
}
