// Elements: made, found, and kept from one drawing to the next. Text is only ever set as text.

import { known } from "./words.js";

export const at = (id) => document.getElementById(id);

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (known(text)) element.textContent = text;
  return element;
}

export const part = (element, className) => element.querySelector(`:scope .${className}`);

/** Make the children of a parent be one for each item, keeping those that already are. */
export function keyed(parent, items, key, create, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  items.forEach((item, place) => {
    const name = String(key(item));
    let child = old.get(name);
    if (!child) {
      child = create(item);
      child.dataset.key = name;
    }
    old.delete(name);
    update(child, item);
    if (parent.children[place] !== child)
      parent.insertBefore(child, parent.children[place] ?? null);
  });
  old.forEach((child) => child.remove());
}

/** One line of text where a list would be empty, so that it says so. */
export const orNone = (items, text) => (items.length ? items : [{ none: text, key: "\u0000none" }]);

export function share(element, value, name = "--part") {
  element.style.setProperty(name, String(Math.max(0, value)));
}

/** The heads of a table. */
export function headRow(names) {
  const line = make("tr");
  for (const name of names) {
    const head = make("th", "", name);
    head.scope = "col";
    line.append(head);
  }
  return line;
}
