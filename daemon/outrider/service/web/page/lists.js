// Long lists: a table of one page of rows, with filters that stand in the address.

import { known, number, zoneKnown } from "./words.js";
import { at, headRow, keyed, make, orNone, setText } from "./elements.js";
import { go, onRoute, route } from "./views.js";

/** Fill a table. `columns`: [head, cell of a row]; the first cell heads its row. */
export function fillTable(name, columns, rows, key, none) {
  keyed(at(`${name}-head`), [columns.map(([head]) => head)], (heads) => heads.join("\n"), headRow, () => {});
  keyed(
    at(name),
    orNone(rows, none),
    (row) => row.key ?? key(row),
    (row) => emptyRow(row, columns.length),
    (line, row) => {
      if (!row.none) columns.forEach(([, cell], place) => setText(line.children[place], cell(row)));
    },
  );
}

function emptyRow(row, width) {
  const line = make("tr");
  if (row.none) {
    const cell = make("td", "none", row.none);
    cell.colSpan = width;
    line.append(cell);
    return line;
  }
  const head = make("th");
  head.scope = "row";
  line.append(head, ...Array.from({ length: width - 1 }, () => make("td")));
  return line;
}

/** The buttons under a list: on to what follows, and back to the first. */
export class Pager {
  after = null; // the cursor of the page before; null: from the first
  #next = null;
  #name;

  constructor(name, turned) {
    this.#name = name;
    at(`${name}-first`).addEventListener("click", () => this.#turn(null, turned));
    at(`${name}-next`).addEventListener("click", () => this.#turn(this.#next, turned));
  }

  #turn(to, turned) {
    this.after = to;
    turned();
  }

  get query() {
    return known(this.after) ? `&after=${encodeURIComponent(this.after)}` : "";
  }

  /** Say how many of how many are shown. */
  show(shown, total, next, order) {
    this.#next = next ?? null;
    const where = known(this.after) ? "further down" : order;
    const text = total > shown ? `${number(shown)} of ${number(total)}, ${where}` : "";
    setText(at(`${this.#name}-shown`), text);
    at(`${this.#name}-first`).hidden = !known(this.after);
    at(`${this.#name}-next`).hidden = !known(this.#next);
  }
}

const ANY = "any";

/** A form whose fields are filters in the address; an empty one, or "any", filters nothing.
 *
 * A field may have a default (data-default), which holds where the address says nothing.
 */
export function filterForm(id) {
  const form = at(id);
  form.addEventListener("submit", (event) => event.preventDefault());
  const fields = [...form.elements].filter((field) => field.name);
  const usual = (field) => field.dataset.default ?? "";
  form.addEventListener("change", () => {
    const values = fields.map((field) => [field, field.value.trim()]);
    go(Object.fromEntries(values.map(([field, value]) => [field.name, value === usual(field) ? "" : value])));
  });
  return {
    /** Show in the form what the address says. */
    take(filters) {
      for (const field of fields) field.value = filters.get(field.name) ?? usual(field);
    },
    /** The same as a query of the API. */
    query() {
      const { filters } = route();
      return fields
        .map((field) => [field.name, filters.get(field.name) ?? usual(field)])
        .filter(([, value]) => value && value !== ANY)
        .map(([name, value]) => `&${name}=${encodeURIComponent(value)}`)
        .join("");
    },
  };
}

/** Ask for a list from its first page when its view is opened, and when its filters change. */
export function onList(view, form, pager, refresh) {
  let before = null;
  onRoute(({ view: now, filters }) => {
    if (now !== view) {
      before = null;
      return;
    }
    form.take(filters);
    const query = form.query();
    if (query === before) return;
    before = query;
    pager.after = null;
    zoneKnown.then(refresh);
  });
}
