// A heat map: a table whose cells are coloured, readable by pointer, keyboard and screen reader.

import { known, significant } from "./words.js";
import { keyed, make, part, setText, share } from "./elements.js";

/** An empty map. `nothing`: what is said of a cell without a value. */
export function heatMap(nothing = "nothing learned") {
  const box = make("div", "heat");
  box.dataset.nothing = nothing;
  const table = make("table");
  const caption = make("caption");
  caption.append(make("b"), make("span", "title"));
  table.append(caption, make("thead"), make("tbody"));
  const foot = make("div", "foot");
  const scale = make("span");
  scale.append(
    make("span", "low"),
    make("span", "ramp"),
    make("span", "high"),
    make("span", "unit"),
  );
  const empty = make("span");
  empty.append(make("span", "swatch"), nothing);
  foot.append(scale, empty, make("span", "readout", "Point at a cell for its value."));
  box.append(table, foot);
  const show = (event) => {
    const cell = event.target.closest("td");
    if (cell) setText(part(box, "readout"), cell.dataset.words);
  };
  box.addEventListener("pointerover", show);
  box.addEventListener("focusin", show);
  box.addEventListener("keydown", moveInTable);
  return box;
}

export function fillHeatMap(box, policy) {
  const { title, columns, rows, unit } = policy.learned;
  const values = rows.flatMap((row) => row.values).filter(known);
  const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [null, null];
  setText(box.querySelector("b"), policy.name);
  setText(part(box, "title"), `: ${title}`);
  setText(part(box, "low"), known(low) ? significant(low) : "");
  setText(part(box, "high"), known(high) ? significant(high) : "");
  setText(part(box, "unit"), ` ${unit || "in the policy's own reward"}`);
  const head = box.querySelector("thead");
  keyed(
    head,
    [columns],
    () => "head",
    () => make("tr"),
    (row) => {
      keyed(
        row,
        ["", ...columns],
        (name) => name,
        (name) => make(name ? "th" : "td"),
        (cell, name) => {
          const place = columns.indexOf(name);
          setText(cell, name && (columns.length <= 12 || place % 3 === 0) ? name : "");
          if (name) {
            cell.scope = "col";
            cell.setAttribute("aria-label", name);
          }
        },
      );
    },
  );
  keyed(
    box.querySelector("tbody"),
    rows,
    (row) => row.label,
    (row) => {
      const line = make("tr");
      const label = make("th", "", row.label);
      label.scope = "row";
      line.append(label);
      return line;
    },
    (line, row) => {
      line.firstChild.title = row.label;
      while (line.children.length > row.values.length + 1) line.lastChild.remove();
      while (line.children.length < row.values.length + 1) {
        const cell = make("td");
        cell.append(make("span", "sr"));
        line.append(cell);
      }
      row.values.forEach((value, place) => {
        const cell = line.children[place + 1];
        const words = known(value) ? significant(value) : box.dataset.nothing;
        cell.dataset.words = `${columns.length === 24 ? `${columns[place]}:00` : columns[place]}, ${row.label}: ${words}`;
        cell.toggleAttribute("data-unknown", !known(value));
        setText(cell.firstChild, words);
        if (known(value)) share(cell, high > low ? (value - low) / (high - low) : 1);
      });
    },
  );
  if (!box.querySelector("td[tabindex]"))
    box.querySelector("tbody td")?.setAttribute("tabindex", "0");
}

/** Arrow keys walk from cell to cell; the whole table is one stop of the tab key. */
function moveInTable(event) {
  const cell = event.target.closest("tbody td");
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[
    event.key
  ];
  if (!cell || !step) return;
  const rows = [...cell.closest("tbody").rows];
  const next = rows[rows.indexOf(cell.parentNode) + step[0]]?.cells[cell.cellIndex + step[1]];
  if (next?.tagName !== "TD") return;
  event.preventDefault();
  cell.removeAttribute("tabindex");
  next.tabIndex = 0;
  next.focus();
}
