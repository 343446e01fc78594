// An administrator's choice of whom to impersonate.
import { failure, field, fill, h } from "./dom.js";
import { session } from "./session.js";

// principalFields are the controls for a principal, and read what they hold.
export function principalFields(given = {}) {
  const subject = h("input", { required: true, value: given.subject ?? "", autocomplete: "off" });
  const groups = h("input", { value: (given.groups ?? []).join(", "), autocomplete: "off" });
  const attributes = h("input", { value: given.attributes ? JSON.stringify(given.attributes) : "", autocomplete: "off", spellcheck: "false" });
  const elements = [
    field("Subject", subject),
    field("Groups", groups, "With commas between. Without groups and attributes they are those of the configuration."),
    field("Attributes", attributes, "JSON, such as {\"clearance\": 2}"),
  ];
  return { elements, read: () => principalOf(subject.value.trim(), groups.value, attributes.value) };
}

function principalOf(subject, groups, attributes) {
  const principal = { subject };
  const list = groups.split(",").map((g) => g.trim()).filter(Boolean);
  if (list.length) principal.groups = list;
  if (attributes.trim()) {
    try {
      principal.attributes = JSON.parse(attributes);
    } catch {
      throw new Error("Attributes: this is no JSON. Write an object, such as {\"clearance\": 2}.");
    }
  }
  return principal;
}

export function impersonationForm() {
  const { elements, read } = principalFields(session.impersonated ?? {});
  const error = h("div");
  return h("details", {}, h("summary", {}, "Impersonate somebody"),
    h("form", { onsubmit: (event) => { event.preventDefault(); open(read, error); } },
      h("p", {}, "You then search and read what this principal of your tenant may read, and nothing else. Each request is recorded in the audit log, with your name and theirs."),
      elements, h("button", {}, "Impersonate"), error));
}

function open(read, error) {
  try {
    session.impersonated = read();
    dispatchEvent(new Event("sluice:show"));
  } catch (problem) {
    fill(error, failure(problem));
  }
}
