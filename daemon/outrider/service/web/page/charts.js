// Charts of plain elements: stacked bars, legends, rows of bars, pairs of name and value.

import { known } from "./words.js";
import { keyed, make, orNone, part, setText, share } from "./elements.js";

export function stack(parent, parts) {
  keyed(
    parent,
    parts,
    ([kind]) => kind,
    ([kind]) => {
      const bar = make("span");
      bar.dataset.kind = kind;
      return bar;
    },
    (bar, [, value]) => {
      share(bar, value ?? 0);
      bar.toggleAttribute("data-zero", !value);
    },
  );
}

export function legend(parent, entries) {
  keyed(
    parent,
    entries,
    (entry) => entry.kind,
    (entry) => {
      const item = make("li");
      item.dataset.kind = entry.kind;
      item.append(
        make("span", "name", entry.name),
        " ",
        make("span", "value"),
        " ",
        make("span", "more"),
      );
      return item;
    },
    (item, entry) => {
      setText(part(item, "value"), entry.value);
      setText(part(item, "more"), entry.more ?? "");
    },
  );
}

/** Rows of name, value and a bar; `fill` and `target` are parts of the whole, 0 to 1. */
export function bars(parent, rows, empty) {
  keyed(
    parent,
    orNone(rows, empty),
    (row) => row.key ?? row.name,
    (row) => {
      if (row.none) return make("li", "none", row.none);
      const item = make("li");
      const track = make("span", "track");
      track.setAttribute("aria-hidden", "true");
      track.append(make("span", "fill"));
      if (known(row.target)) track.append(make("span", "target"));
      const value = make("span", "value");
      value.append(make("span", "main"), " ", make("span", "more"));
      item.append(make("span", "name", row.name), value, track);
      return item;
    },
    (item, row) => {
      if (row.none) return;
      part(item, "name").title = row.name;
      setText(part(item, "main"), row.value);
      setText(part(item, "more"), row.more ?? "");
      const fill = part(item, "fill");
      fill.dataset.kind = row.kind ?? "";
      share(fill, Math.min(1, row.fill));
      if (known(row.target)) share(part(item, "target"), Math.min(1, row.target), "--target");
    },
  );
}

export function pairs(parent, rows) {
  keyed(
    parent,
    rows.flatMap(([name, value, warn]) => [
      { tag: "dt", name, text: name },
      { tag: "dd", name, text: value, warn },
    ]),
    (cell) => `${cell.tag} ${cell.name}`,
    (cell) => make(cell.tag),
    (element, cell) => {
      setText(element, cell.text);
      element.classList.toggle("warn", Boolean(cell.warn));
    },
  );
}
