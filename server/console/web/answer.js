// Answers in sentences, each with the passages that it rests on, and questions
// that follow from them.
import { Problem, collection, events } from "./api.js";
import { count, failure, field, fill, h, plural, say } from "./dom.js";
import { evidence } from "./search.js";
import { session } from "./session.js";

const reasons = {
  nothing_found: "nothing was found",
  not_mentioned: "no passage mentions what the question is about",
  declined: "the model found no answer in the passages",
  unsupported: "the passages do not bear out what the model said",
};

// What the API takes of a conversation.
const maxTurns = 32;
const maxHistory = 30_000; // bytes

// answerTo begins a conversation, and shows the answer as it comes. A daemon that
// answers nothing has the passages below it stand for themselves.
export async function answerTo({ collection, query, region, time, who }, into, signal) {
  session.conversation = { collection, scope: { any_region: region, any_time: time }, who, turns: [] };
  const { section, ask } = panel(session.conversation, into, signal);
  into.prepend(section);
  await ask(query);
}

// conversation is what was asked and answered here before, to go on with.
export const conversation = (into, signal) => panel(session.conversation, into, signal).section;

function panel(conversation, into, signal) {
  const { turns } = conversation;
  const leaving = new AbortController();
  const exchanges = h("div", {}, turns.map((turn) => exchange(conversation, turn)));
  const question = h("input", { required: true, autocomplete: "off", maxlength: 8192 });
  const form = h("form", { hidden: !turns.some((turn) => asksModel(turn.answer)), onsubmit: (event) => { event.preventDefault(); followUp(); } },
    field("Follow-up question", question, "It is understood from what was asked and answered above."),
    h("div", { class: "row" },
      h("button", { class: "primary" }, "Ask"),
      h("button", { type: "button", onclick: forget }, "Forget the conversation")));
  const section = h("section", { class: "answer", "aria-label": "Answer" }, h("h2", {}, "Answer"), exchanges, form);
  const signals = AbortSignal.any([signal, leaving.signal]);
  let busy = false;

  async function ask(asked) {
    const body = h("div", {}, "Reading the passages…");
    const open = h("div", {}, h("h3", {}, asked), body);
    exchanges.append(open);
    busy = true;
    try {
      const answer = await answered(conversation, asked, body, signals);
      turns.push({ question: asked, answer });
      open.replaceWith(exchange(conversation, turns.at(-1)));
      form.hidden = !asksModel(answer);
      say("Answered");
    } catch (error) {
      if (error.name === "AbortError") throw error;
      fill(body, error.status === 404 ? h("p", {}, alone) : failure(error));
    } finally {
      busy = false;
    }
  }

  function followUp() {
    if (busy) return say("The answer before it is still coming.");
    into.replaceChildren(section); // the passages below were those of the first question
    ask(question.value).catch(() => {}); // whoever left wants no answer
    question.value = "";
  }

  function forget() {
    leaving.abort();
    session.conversation = null;
    section.remove();
    document.querySelector("form[role=search] input").focus();
    say("The conversation is forgotten.");
  }
  return { section, ask };
}

// answered asks, and shows what has come so far.
async function answered({ collection: name, scope, turns }, question, body, signal) {
  const sofar = [];
  const options = { body: { question, scope, history: history(turns) }, impersonates: true, signal };
  for await (const { queries, sentence, answer, problem } of events("POST", collection(name, "answer"), options)) {
    if (problem) throw new Problem(problem.status, problem.detail ?? problem.title);
    if (queries) fill(body, understood(question, queries), h("p", {}, "Reading the passages…"));
    if (sentence) fill(body, sofar.push(sentence.text) && h("p", {}, sofar.join(" ")));
    if (answer) return answer;
  }
  throw new Problem(0, "The answer broke off. Ask again.");
}

// history is the last of a conversation, as much as the API takes.
function history(turns) {
  const said = turns.slice(-maxTurns).map(({ question, answer }) => ({ question, answer: answer.sentences.map((s) => s.text).join(" ") }));
  const size = () => new TextEncoder().encode(said.map((turn) => turn.question + turn.answer).join("")).length;
  while (said.length > 0 && size() > maxHistory) said.shift();
  return said;
}

// understood is the question in the words of its own that the conversation gave it.
function understood(question, queries) {
  const own = queries.filter((q) => q !== question);
  return own.length > 0 && h("p", { class: "meta" }, `Understood as: ${own.join("; ")}`);
}

const exchange = ({ collection: name }, { question, answer }) => h("div", {}, h("h3", {}, question), whole(name, question, answer));

const alone = "This daemon has no chat model to answer with: the passages below are the evidence, alone.";
const unreached = "The chat model could not be asked: the passages below are the evidence, alone.";

const asksModel = ({ outcome, degraded }) => outcome !== "evidence" || degraded.includes("answer_unavailable");

function whole(name, question, answer) {
  const { outcome, reason, sentences, passages, queries, dropped, degraded, model, usage } = answer;
  if (outcome === "evidence") return [h("p", {}, asksModel(answer) ? unreached : alone), rests("What was found", name, passages)];
  const known = new Map(passages.map((p) => [p.id, p]));
  const unsaid = Object.values(dropped).reduce((a, b) => a + b, 0);
  return [
    understood(question, queries),
    outcome === "no_answer" ? h("p", {}, `There is no answer: ${reasons[reason] ?? reason}.`)
      : h("p", {}, sentences.map(({ text, citations }) => [text, " ", citations.map((id) => cite(name, id, known.get(id))), " "])),
    unsaid > 0 && h("p", { class: "meta" }, `${plural(unsaid, "sentence")} left out that the passages do not bear out: ${Object.entries(dropped).map(([why, n]) => `${why} ${count(n)}`).join(", ")}.`),
    degraded.length > 0 && h("p", { class: "warning" }, `Left out: ${degraded.join(", ")}.`),
    rests("What it rests on", name, passages),
    model && h("p", { class: "meta" }, `${model}, ${plural(usage.prompt_tokens + usage.completion_tokens, "token")}.`),
  ];
}

// cite leads to a source in its document. An id without a source is none.
function cite(name, id, passage) {
  return passage && h("a", { class: "cite", href: evidence(name, passage), "aria-label": `${id}: ${passage.title || passage.document}` }, id);
}

function rests(title, name, passages) {
  return passages.length > 0 && h("details", {}, h("summary", {}, title), passages.map((p) => source(name, p)));
}

function source(name, p) {
  return h("article", { "aria-label": p.id },
    h("h3", {}, h("a", { href: evidence(name, p) }, `${p.id}: ${p.title || p.document}`)),
    h("blockquote", {}, p.text));
}
