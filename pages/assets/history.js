// What was selected before, to go back to.

const MOST_BEFORE = 200;
const KEPT = ["view", "instruction", "instructions", "steps", "whole", "places", "path", "loop", "target"];

/** A button that goes back to what was selected before; the key for it is Backspace. */
function backButton() {
  const before = [];
  const now = () => Object.fromEntries(KEPT.map((name) => [name, selected[name]]));
  let current = now();
  const back = () => {
    if (!before.length) return;
    const { view } = selected;
    current = Object.assign(selected, before.pop()) && now();
    button.disabled = !before.length;
    for (const listener of selected.listeners) listener(view === selected.view ? "back" : "view");
    say(selected.instruction < 0 ? "nothing is selected" : `back to ${selected.program.name[selected.instruction]}`);
  };
  const button = element("button", { "aria-label": "Back", title: "Back to what was selected before (Backspace)", disabled: true, click: back }, "←");
  selected.listeners.push((from) => {
    if (from === "back" || KEPT.every((name) => current[name] === selected[name])) return;
    before.push(current);
    if (before.length > MOST_BEFORE) before.shift();
    current = now();
    button.disabled = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Backspace" || ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName)) return;
    event.preventDefault();
    back();
  });
  return button;
}
