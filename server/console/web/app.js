// The frame around the pages: who is there, which page, and the way between them.
import { call } from "./api.js";
import { failure, fill, h, say } from "./dom.js";
import { session } from "./session.js";

// Pages by the first segment of the fragment; admin: for administrators only.
const pages = {
  search: { title: "Search", load: () => import("./search.js") },
  document: { load: () => import("./document.js") },
  collections: { title: "Collections", load: () => import("./collections.js") },
  access: { title: "Access", admin: true, load: () => import("./access.js") },
  policies: { title: "Policies", admin: true, load: () => import("./policies.js") },
  system: { title: "System", admin: true, load: () => import("./system.js") },
  reports: { title: "Reports", load: () => import("./reports.js") },
};

const main = document.getElementById("main");
let turn = null; // AbortController of the page that shows

// place reads the fragment: #/page/segment/…?name=value.
function place() {
  const [way, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [page, ...rest] = way.split("/").map(decodeURIComponent);
  return { page: pages[page] ? page : "search", rest, query: new URLSearchParams(query) };
}

async function show() {
  turn?.abort();
  main.setAttribute("aria-busy", "true");
  turn = new AbortController();
  const { signal } = turn;
  if (!session.known) return showEntrance();
  try {
    session.identity ??= await call("GET", "v1/identity", { signal });
    const { page, rest, query } = place();
    frame(page);
    const { view } = await pages[page].load();
    const shown = await view({ rest, query, signal });
    if (!signal.aborted) put(shown, pages[page].title);
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 401) return leave(error);
    put([h("h1", {}, "This did not work"), failure(error)], "Error");
  }
}

// put shows a page and moves the focus to it, as a browser does with a new one.
function put(content, title) {
  fill(main, content);
  main.removeAttribute("aria-busy");
  const heading = main.querySelector("h1");
  document.title = `${title ?? heading?.textContent ?? ""} · Sluice`;
  if (main.dataset.shown) main.focus({ preventScroll: main.querySelector("mark") !== null });
  main.dataset.shown = "yes";
  main.querySelector("mark")?.scrollIntoView({ block: "center" });
}

function frame(current) {
  fill(document.getElementById("pages"), Object.entries(pages)
    .filter(([, page]) => page.title && (!page.admin || session.admin))
    .map(([name, page]) => h("li", {}, h("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null }, page.title))));
  const { subject, tenant, role } = session.identity;
  fill(document.getElementById("who"),
    h("span", {}, `${subject} of ${tenant}${role === "read" ? "" : ` (${role})`} `),
    h("button", { onclick: () => leave() }, "Change"));
  showImpersonation();
}

// showImpersonation says, on every page, whom an administrator impersonates.
function showImpersonation() {
  fill(document.getElementById("impersonation"), session.impersonated && h("aside", { "aria-label": "Impersonation" },
    "You impersonate ", h("strong", {}, session.impersonated.subject), ". The audit log keeps it. ",
    h("button", { onclick: () => { session.impersonated = null; show(); } }, "Be yourself again")));
}

function leave(error) {
  turn?.abort(); // what was asked for shows no more, nor is more asked
  session.leave();
  for (const id of ["pages", "who", "impersonation"]) fill(document.getElementById(id));
  showEntrance(error);
}

async function showEntrance(error) {
  const { view } = await import("./entrance.js");
  put(await view(enter, error), "Who are you?");
}

function enter(credentials) {
  session.enter(credentials);
  say("");
  show();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment is the page's
  main.focus();
});
addEventListener("hashchange", show);
addEventListener("sluice:show", show);
show();
