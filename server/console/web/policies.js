// The policies in force, and a dry run of others: who would gain, who would lose.
import { call, collection } from "./api.js";
import { count, failure, field, fill, h, plural, say, select, table } from "./dom.js";

export async function view({ rest, signal }) {
  const [{ collections }, present] = await Promise.all([call("GET", "v1/collections", { signal }), call("GET", "v1/policies", { signal })]);
  const name = select(collections.map((c) => [c.name]), rest[0]);
  const files = [["the schema", present.schema], ...Object.entries(present.files)].map(([file, source]) => editor(file, source));
  const list = h("div", {}, files.map((f) => f.element));
  const subjects = h("textarea", { rows: 2, autocomplete: "off", spellcheck: "false" });
  const outcome = h("section", { "aria-label": "Outcome" });
  const added = h("input", { placeholder: "new.cedar", pattern: "[^\\/]+\\.cedar", autocomplete: "off" });
  const add = () => {
    if (!added.value || !added.reportValidity() || files.some((f) => f.file === added.value)) return;
    const one = editor(added.value, "");
    files.push(one);
    list.append(one.element);
    one.open();
    added.value = "";
  };
  const preview = async () => {
    fill(outcome, h("p", {}, "Comparing…"));
    try {
      fill(outcome, compared(await call("POST", collection(name.value, "access", "preview"), { body: supposed(files, subjects.value), signal })));
      say("Compared");
    } catch (error) {
      if (error.name !== "AbortError") fill(outcome, failure(error));
    }
  };
  return [
    h("h1", {}, "Policies"),
    h("p", {}, "Change the policies below and see who would gain and who would lose. Nothing is put in force: that is done in the daemon’s folder of policies."),
    list,
    h("div", { class: "row" }, field("Another file", added), h("button", { onclick: add }, "Add")),
    h("form", { onsubmit: (event) => { event.preventDefault(); preview(); } },
      field("Collection", name),
      field("Principals", subjects, "Subjects, one a line. None: all readers that documents name."),
      h("button", { class: "primary" }, "Show who gains and who loses")),
    outcome,
  ];
}

function editor(file, source) {
  const area = h("textarea", { rows: 14, spellcheck: "false", class: "code", "aria-label": file });
  area.value = source;
  const element = h("details", {}, h("summary", {}, file), area);
  return { file, element, text: () => area.value, open: () => { element.open = true; area.focus(); } };
}

function supposed([schema, ...files], subjects) {
  const body = { policies: { schema: schema.text(), files: {} } };
  for (const f of files) {
    if (f.text().trim()) body.policies.files[f.file] = f.text();
  }
  const list = subjects.split("\n").map((s) => s.trim()).filter(Boolean);
  if (list.length) body.principals = list.map((subject) => ({ subject }));
  return body;
}

function compared({ compared: all, left_out: leftOut, changed, gained, lost, differences, unfit }) {
  return [
    h("h2", {}, changed ? `${plural(changed, "principal")} of ${count(all)} would see something else` : `Nobody of ${plural(all, "principal")} would see anything else`),
    h("p", {}, `Over all of them ${plural(gained, "document")} gained and ${count(lost)} lost.`),
    leftOut > 0 && h("p", { class: "warning" }, `${count(leftOut)} principals were left out. Name those who matter.`),
    unfit.length > 0 && h("p", { class: "warning" }, `These do not fit the policies and read nothing: ${unfit.join(", ")}.`),
    differences.length > 0 && table("The largest differences", ["Principal", "Gains", "Loses", "Gained", "Lost"],
      differences.map((d) => [d.principal, count(d.gains), count(d.loses), keys(d.gained, d.gains), keys(d.lost, d.loses)])),
  ];
}

const keys = (some, all) => some.join(", ") + (all > some.length ? ` and ${count(all - some.length)} more` : "");
