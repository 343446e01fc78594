// Why a principal may, or may not, read a document. A link fills the form in and
// no more: what is asked stands in the audit log, so the visitor asks it.
import { call, collection } from "./api.js";
import { facts, failure, field, fill, h, say, select } from "./dom.js";
import { principalFields } from "./impersonation.js";
import { session } from "./session.js";

export async function view({ rest, query, signal }) {
  const { collections } = await call("GET", "v1/collections", { signal });
  const name = select(collections.map((c) => [c.name]), rest[0]);
  const key = h("input", { required: true, value: query.get("document") ?? "", autocomplete: "off" });
  const { elements, read } = principalFields(given(query.get("subject")));
  const answer = h("section", { "aria-label": "Answer" });
  const ask = async () => {
    try {
      const body = { principal: read(), document: key.value };
      fill(answer, explained(await call("POST", collection(name.value, "access", "explain"), { body, signal })));
      say("Explained");
    } catch (error) {
      if (error.name !== "AbortError") fill(answer, failure(error));
    }
  };
  return [
    h("h1", {}, "Who may read what, and why"),
    h("form", { onsubmit: (event) => { event.preventDefault(); ask(); } },
      field("Collection", name), field("Document", key), elements, h("button", { class: "primary" }, "Explain")),
    answer,
  ];
}

// given is the principal that a link names, as one impersonates them.
const given = (subject) => session.impersonated?.subject === subject ? session.impersonated : { subject };

function explained({ principal, configured, document, reads, readers, policies }) {
  return [
    h("h2", {}, `${principal.subject} ${reads ? "may read" : "may not read"} ${document}`),
    facts([
      ["Readers", readersText(readers)],
      ["Policies", policiesText(policies)],
      ["Decided by", policies.by.join(", ")],
      ["Errors", policies.errors.join("; ")],
      ["The document’s attributes", JSON.stringify(policies.attributes)],
      ["The principal’s groups", (principal.groups ?? []).join(", ") || "none"],
      ["The principal’s attributes", JSON.stringify(principal.attributes ?? {})],
      ["They come from", configured ? "the configuration" : "what you entered"],
    ]),
  ];
}

function readersText({ declared, admit, by }) {
  if (!declared) return "The document has no list of readers: policies alone decide.";
  return admit ? `The list of readers admits through ${by.join(", ")}.` : "The list of readers does not admit this principal.";
}

function policiesText({ permit, forbid, built_in: builtIn }) {
  const whose = builtIn ? " They are those of a daemon that has none of its own." : "";
  if (forbid) return `A policy forbids it, which decides.${whose}`;
  return (permit ? "A policy permits it and none forbids it." : "No policy permits it.") + whose;
}
