// Who are you? In a demo: a choice. Else: a token or an API key.
import { call } from "./api.js";
import { failure, field, h } from "./dom.js";

export async function view(enter, error) {
  const demo = await call("GET", "v1/demo").catch(() => null);
  return [h("h1", {}, "Who are you?"), error && failure(error), demo ? choice(demo, enter) : token(enter)];
}

function choice({ principals }, enter) {
  const roles = { read: "reads", write: "reads and writes", admin: "administrator" };
  return [
    h("p", {}, "This is a demo: choose whom to be. The same question finds something else for each."),
    h("ul", { class: "choice" }, principals.map(({ name, tenant, role }) => h("li", {},
      h("button", { onclick: () => enter({ demo: name }) }, h("strong", {}, name), h("span", {}, `${tenant}, ${roles[role]}`))))),
  ];
}

function token(enter) {
  const input = h("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  return h("form", { onsubmit: (event) => { event.preventDefault(); enter({ token: input.value.trim() }); } },
    field("Token or API key", input, "It stays in this tab and goes to this daemon only. An administrator makes a key with ‘sluice key’."),
    h("button", { class: "primary" }, "Enter"));
}
