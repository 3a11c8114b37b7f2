// Tables that a click on a head sorts: the order stands in the address, as "sort=-cpus".

import { make } from "./elements.js";
import { go, route } from "./views.js";

export class Sorting {
  #keys;
  #usual;

  /** `keys`: what the API sorts by, by the text of the head; `usual`: the order of no choice. */
  constructor(keys, usual) {
    this.#keys = keys;
    this.#usual = usual;
  }

  /** The order now; with a minus, the greatest comes first. */
  get order() {
    return route().filters.get("sort") || this.#usual;
  }

  /** The same for a query of the API. */
  query() {
    return this.order === this.#usual ? "" : `&sort=${encodeURIComponent(this.order)}`;
  }

  /** A row of heads; those that sort are buttons. */
  headRow(names) {
    const line = make("tr");
    for (const name of names) {
      const key = this.#keys[name];
      const head = make("th", "", key ? null : name);
      head.scope = "col";
      if (key) {
        head.dataset.sort = key;
        const button = make("button", "link", name);
        button.type = "button";
        button.addEventListener("click", () => this.#turn(key));
        head.append(button);
      }
      line.append(head);
    }
    return line;
  }

  /** Mark in a row of heads the one that the table is sorted by. */
  mark(line) {
    const key = this.order.replace(/^-/, "");
    for (const head of line.children) {
      if (head.dataset.sort === key)
        head.setAttribute("aria-sort", this.order.startsWith("-") ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }

  /** By this: the greatest first, but where that is so already or the usual order is meant. */
  #turn(key) {
    const isNow = this.order.replace(/^-/, "") === key;
    const first = this.#usual === key ? key : `-${key}`;
    const other = first === key ? `-${key}` : key;
    const order = isNow && this.order === first ? other : first;
    go({ sort: order === this.#usual ? "" : order });
  }
}
