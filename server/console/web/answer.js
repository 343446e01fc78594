// An answer in sentences, each with the passages that it rests on.
import { Problem, collection, events } from "./api.js";
import { count, failure, fill, h, plural, say } from "./dom.js";
import { evidence } from "./search.js";

const reasons = {
  nothing_found: "nothing was found",
  not_mentioned: "no passage mentions what the question is about",
  declined: "the model found no answer in the passages",
  unsupported: "the passages do not bear out what the model said",
};

// answerTo shows an answer as it comes. A daemon that answers nothing has the
// passages below it stand for themselves.
export async function answerTo({ collection: name, query, region, time }, into, signal) {
  const body = h("div", {}, "Reading the passages…");
  into.prepend(h("section", { class: "answer", "aria-label": "Answer" }, h("h2", {}, "Answer"), body));
  const options = { body: { question: query, scope: { any_region: region, any_time: time } }, impersonates: true, signal };
  try {
    const sofar = [];
    for await (const { sentence, answer, problem } of events("POST", collection(name, "answer"), options)) {
      if (problem) throw new Problem(problem.status, problem.detail ?? problem.title);
      if (sentence) fill(body, sofar.push(sentence.text) && h("p", {}, sofar.join(" ")));
      if (answer) fill(body, whole(name, query, answer));
    }
    say("Answered");
  } catch (error) {
    if (error.name === "AbortError") throw error;
    fill(body, error.status === 404 ? h("p", {}, alone) : failure(error));
  }
}

const alone = "This daemon has no chat model to answer with: the passages below are the evidence, alone.";

function whole(name, query, { outcome, reason, sentences, passages, queries, dropped, degraded, model, usage }) {
  if (outcome === "evidence") return h("p", {}, alone);
  const known = new Map(passages.map((p) => [p.id, p]));
  const unsaid = Object.values(dropped).reduce((a, b) => a + b, 0);
  return [
    outcome === "no_answer" ? h("p", {}, `There is no answer: ${reasons[reason] ?? reason}.`)
      : h("p", {}, sentences.map(({ text, citations }) => [text, " ", citations.map((id) => cite(name, id, known.get(id))), " "])),
    unsaid > 0 && h("p", { class: "meta" }, `${plural(unsaid, "sentence")} left out that the passages do not bear out: ${Object.entries(dropped).map(([why, n]) => `${why} ${count(n)}`).join(", ")}.`),
    degraded.length > 0 && h("p", { class: "warning" }, `Left out: ${degraded.join(", ")}.`),
    queries.length > 1 && h("p", { class: "meta" }, `Also searched: ${queries.filter((q) => q !== query).join("; ")}.`),
    passages.length > 0 && h("details", {}, h("summary", {}, "What it rests on"), passages.map((p) => source(name, p))),
    model && h("p", { class: "meta" }, `${model}, ${plural(usage.prompt_tokens + usage.completion_tokens, "token")}.`),
  ];
}

// cite leads to a source in its document. An id without a source is none.
function cite(name, id, passage) {
  return passage && h("a", { class: "cite", href: evidence(name, passage), "aria-label": `${id}: ${passage.title || passage.document}` }, id);
}

function source(name, p) {
  return h("article", { "aria-label": p.id },
    h("h3", {}, h("a", { href: evidence(name, p) }, `${p.id}: ${p.title || p.document}`)),
    h("blockquote", {}, p.text));
}
