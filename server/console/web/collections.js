// Collections, their generations, and the jobs that rebuild them, live.
import { call, collection, events } from "./api.js";
import { confirmed, count, date, facts, failure, field, fill, h, plural, say, table } from "./dom.js";
import { session } from "./session.js";

const chunkers = ["structure/1", "markdown/1", "text/1", "fixed/1"];

export async function view({ rest: [name], signal }) {
  return name ? one(name, signal) : all(signal);
}

async function all(signal) {
  const { collections } = await call("GET", "v1/collections", { signal });
  return [
    h("h1", {}, "Collections"),
    collections.length === 0 ? h("p", {}, "There is none yet. ‘sluice ingest FOLDER --collection NAME’ makes one.")
      : table("Those of your tenant", ["Name", "Model", "Dimensions", "Chunker", "Created"], collections.map((c) => [
        h("a", { href: `#/collections/${encodeURIComponent(c.name)}` }, c.name),
        c.model || "documents bring their vectors", String(c.dimensions), c.chunker || "by format", date(c.created)])),
  ];
}

async function one(name, signal) {
  const [settings, documents] = await Promise.all([
    call("GET", collection(name), { signal }), call("GET", `${collection(name, "documents")}?limit=100`, { impersonates: true, signal })]);
  const jobs = session.admin ? await generations(name, signal) : [];
  return [
    h("p", {}, h("a", { href: "#/collections" }, "All collections")),
    h("h1", {}, name),
    facts([
      ["Model", settings.model || "none: documents bring their vectors"], ["Dimensions", String(settings.dimensions)],
      ["Analyzer", settings.analyzer], ["Token codes", settings.token_codes ? plural(settings.code_bits, "bit") : "none"],
      ["Chunker", settings.chunker || "that of each document’s format"], ["Created", date(settings.created)],
    ]),
    jobs,
    h("h2", {}, "Documents"),
    table(documents.next ? "The first 100 that you may read" : "Those that you may read", ["Title", "Key", "Format", "Passages", "Updated"],
      documents.documents.map((d) => [
        h("a", { href: `#/document/${encodeURIComponent(name)}/${encodeURIComponent(d.key)}` }, d.title || d.key), d.key, d.format, count(d.chunks), date(d.updated)])),
  ];
}

// generations shows the generations, follows a running job, and offers what can
// be done.
async function generations(name, signal) {
  const list = h("div");
  const error = h("div");
  const render = (state) => fill(list, state.generations.map((g) => generation(g, act)), progress(state));
  const follow = async () => {
    for await (const state of events("GET", collection(name, "reindex", "events"), { signal })) render(state);
  };
  const watch = () => follow().catch((e) => e.name !== "AbortError" && fill(error, failure(e)));
  const act = async (action, body = {}) => {
    fill(error);
    try {
      render(await call("POST", action ? collection(name, "reindex", action) : collection(name, "reindex"), { body, signal }));
      say(`Done: ${action || "started"}`);
      watch();
    } catch (e) {
      if (e.name !== "AbortError") fill(error, failure(e));
    }
  };
  const state = await call("GET", collection(name, "reindex"), { signal });
  render(state);
  if (state.progress) watch();
  return [h("h2", {}, "Generations"), list, error, reindexForm(name, signal, act)];
}

// What can be done to a generation: the action, its label, and what is asked first.
const actions = {
  pause: ["Pause"],
  resume: ["Resume"],
  cancel: ["Cancel", "Cancel the job? What it has built is thrown away."],
  rollback: ["Roll back to it", "Serve this earlier generation again? The one that serves now stays beside it."],
  drop: ["Drop", "Drop this generation? There is then no way back to it."],
};

function possible({ role, job }) {
  if (role === "building") return job?.state === "running" ? ["pause", "cancel"] : ["resume", "cancel"];
  return role === "previous" ? ["rollback", "drop"] : [];
}

function generation(g, act) {
  const buttons = possible(g).map((action) => {
    const [label, question] = actions[action];
    return h("button", { onclick: async () => (!question || await confirmed(question, label)) && act(action) }, label);
  });
  return h("article", { class: g.role },
    h("h3", {}, `Generation ${g.id}: ${g.role}`),
    facts([
      ["Chunker", g.chunker || "by format"], ["Created", date(g.created)], ["Job", g.job && [g.job.state, g.job.reason].filter(Boolean).join(": ")],
      ["Embedded", g.job && `${plural(g.job.embedded, "passage")}, ${count(g.job.reused)} reused`],
    ]),
    g.job?.gates.length > 0 && h("ul", {}, g.job.gates.map((gate) => h("li", {}, `${gate.passed ? "Passed" : "Not passed"}: ${gate.name}. ${gate.detail}`))),
    buttons.length > 0 && h("p", { class: "row" }, buttons));
}

function progress({ progress: p }) {
  if (!p) return null;
  const text = `${count(p.documents)} of ${plural(p.of, "document")}, ${p.rate.toFixed(1)} a second` + (p.seconds_left ? `, ${duration(p.seconds_left)} left` : "");
  return h("p", {}, h("progress", { value: p.documents, max: p.of || 1, "aria-label": "Documents built" }), ` ${text}`);
}

const duration = (seconds) => seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;

function reindexForm(name, signal, act) {
  const chunker = h("input", { required: true, value: chunkers[0], list: "chunkers", autocomplete: "off" });
  const estimate = h("div", { role: "status" });
  const ask = async () => {
    fill(estimate, "Reading the documents…");
    try {
      const e = await call("POST", collection(name, "reindex", "estimate"), { body: { chunker: chunker.value }, signal });
      fill(estimate, h("p", {}, `${plural(e.documents, "document")}, ${plural(e.chunks, "passage")}: ${count(e.new)} to embed (${plural(e.tokens, "token")}), ${count(e.reused)} reused; ` +
        `about ${duration(e.seconds)} and ${Math.ceil(e.bytes / 1e6)} MB.`),
      h("button", { class: "primary", type: "button", onclick: () => { fill(estimate); act("", { chunker: e.chunker }); } }, "Start"));
    } catch (error) {
      if (error.name !== "AbortError") fill(estimate, failure(error));
    }
  };
  return h("details", {}, h("summary", {}, "Reindex"),
    h("form", { onsubmit: (event) => { event.preventDefault(); ask(); } },
      field("Chunker", chunker), h("datalist", { id: "chunkers" }, chunkers.map((value) => h("option", { value }))),
      h("button", {}, "Estimate")),
    estimate);
}
