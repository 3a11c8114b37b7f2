// Views: which sections are shown, and what of long lists, all by the address after the #.
//
// "#/jobs?user=ada&job=12.0" is the view of jobs, of one user, with one job explained. So every
// view can be linked to, reloaded and left by the browser's own "back".

const NOW = "now";
const VIEWS = [NOW, "jobs", "users", "machines", "policies", "outrider"];
const listeners = [];
let shown = null;

/** What the address says: the view, and its filters. */
export function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const view = VIEWS.includes(path) ? path : NOW;
  return { view, filters: new URLSearchParams(query) };
}

/** Another address: of a view, or of this one. Filters without a value are left out. */
export function go(changes, view = route().view) {
  const filters = view === route().view ? route().filters : new URLSearchParams();
  for (const [name, value] of Object.entries(changes)) {
    if (value) filters.set(name, value);
    else filters.delete(name);
  }
  const query = filters.toString();
  location.hash = `#/${view === NOW ? "" : view}${query ? `?${query}` : ""}`;
}

/** Call a function with the route now, and whenever it has changed. */
export function onRoute(listener) {
  listeners.push(listener);
  listener(route());
}

function show({ view }) {
  if (shown !== null && shown !== view) scrollTo(0, 0);
  shown = view;
  for (const section of document.querySelectorAll("[data-views]"))
    section.hidden = !section.dataset.views.split(" ").includes(view);
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

onRoute(show);
addEventListener("hashchange", () => {
  if (location.hash && !location.hash.startsWith("#/")) return; // a place on the page
  const now = route();
  listeners.forEach((listener) => listener(now));
});
