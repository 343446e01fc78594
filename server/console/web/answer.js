// An answer in sentences, each with the passages that it rests on.
import { Problem, call, collection } from "./api.js";
import { failure, h } from "./dom.js";
import { evidence } from "./search.js";

// answerTo asks for an answer. A daemon without a chat model has none, and the
// passages below stand for themselves.
export async function answerTo({ collection: name, query }, results, signal) {
  const section = (...content) => h("section", { class: "answer", "aria-label": "Answer" }, h("h2", {}, "Answer"), content);
  try {
    const answer = await call("POST", collection(name, "answer"), { body: { query }, eyes: true, signal });
    return section(sentences(name, answer));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (error instanceof Problem && error.status === 404) return section(h("p", {}, "This daemon has no chat model: the passages below are the evidence, alone."));
    return section(failure(error));
  }
}

function sentences(name, { sentences: all = [], passages = [] }) {
  if (!all.length) return h("p", {}, "No answer that the passages bear out.");
  const known = new Map(passages.map((p) => [p.id, p]));
  return [
    h("p", {}, all.map(({ text, citations }) => [text, " ", citations.map((id) => cite(name, id, known.get(id))), " "])),
    h("details", {}, h("summary", {}, "What it rests on"),
      h("ol", { class: "results" }, passages.map((p) => h("li", {}, h("article", {},
        h("h3", {}, h("a", { href: evidence(name, p) }, `${p.id}: ${p.title || p.document}`)), h("blockquote", {}, p.text)))))),
  ];
}

function cite(name, id, passage) {
  return passage && h("a", { class: "cite", href: evidence(name, passage), "aria-label": `${id}: ${passage.title || passage.document}` }, id);
}
