// A slider over the stages of a program, and what each of them changed.

/** Mark in each view what the view before has not: instructions by name, and those that read or
 * compute something else under the same name. */
function linkStages() {
  PROGRAMS.forEach((program, number) => {
    const before = PROGRAMS[number - 1];
    program.added = new Set();
    program.changed = new Set();
    program.gone = [];
    if (!before) return;
    const text = (p, i) => `${p.shape[i]} ${p.opcode[i]}${p.rest[i]}`;
    for (let i = 0; i < program.count; i++) {
      const old = program.in(before, i);
      if (old < 0) program.added.add(i);
      else if (text(before, old) !== text(program, i)) program.changed.add(i);
    }
    if (DATA.guilty === number) {
      const wrong = program.byName.get(DATA.marked);
      program.marked = new Set(wrong === undefined ? [] : [wrong]);
    }
    program.gone = before.name.filter((name) => !program.byName.has(name));
  });
}

/** The slider, and a line about the stage that it is at. */
function stageSlider() {
  linkStages();
  const line = element("span", { class: "stage-line" });
  const range = element("input", {
    type: "range", min: 0, max: PROGRAMS.length - 1, value: selected.view, "aria-label": "Stage",
    input: () => selected.show(Number(range.value)),
  });
  const draw = () => {
    const program = selected.program;
    range.value = String(selected.view);
    range.setAttribute("aria-valuetext", program.view.title);
    const counts = selected.view === 0 ? `${program.count} instructions`
      : `${program.count} instructions: ${program.added.size} new, ${program.changed.size} changed, ${program.gone.length} gone`;
    const guilty = DATA.guilty === selected.view;
    line.replaceChildren(part(guilty ? "bad" : "name", program.view.title), " ", part("muted", counts),
      ...(guilty ? [" ", part("bad", DATA.blame)] : []));
  };
  selected.listeners.push((from) => from === "view" && draw());
  draw();
  return element("section", { class: "stages", "aria-label": "Stages" }, range, line);
}
