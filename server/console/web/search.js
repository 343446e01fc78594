// Search: passages with why they are there, and an answer where a chat model is
// at hand.
import { call, collection } from "./api.js";
import { answerTo, conversation } from "./answer.js";
import { check, count, failure, field, fill, h, plural, say, select, table } from "./dom.js";
import { impersonationForm } from "./impersonation.js";
import { session } from "./session.js";

const strategies = ["", "sparse", "dense", "late", "hybrid", "hybrid-late", "hybrid-rerank", "auto"];

const nothing = { query: "", k: 10, strategy: "", region: false, time: false };

export async function view({ rest, signal }) {
  const { collections } = await call("GET", "v1/collections", { signal });
  if (!collections.length) return [h("h1", {}, "Search"), h("p", {}, "There is no collection yet. ‘sluice ingest FOLDER --collection NAME’ makes one.")];
  const names = collections.map((c) => c.name);
  const chosen = [rest[0], session.searched?.collection].find((name) => names.includes(name)) ?? names[0];
  return page(names, chosen, signal);
}

function page(names, chosen, signal) {
  const last = session.searched ?? nothing;
  const name = select(names.map((n) => [n]), chosen);
  const query = h("input", { type: "search", value: last.query, required: true, autocomplete: "off", maxlength: 8192 });
  const k = h("input", { type: "number", min: 1, max: 100, value: last.k });
  const strategy = select(strategies.map((s) => [s, s || "the fullest there is"]), last.strategy);
  const region = h("input", { checked: last.region });
  const time = h("input", { checked: last.time });
  const results = h("section", { "aria-label": "Results" });
  const ask = (answered) => {
    session.conversation = null;
    session.searched = { collection: name.value, query: query.value, k: Number(k.value), strategy: strategy.value, region: region.checked, time: time.checked, who: who() };
    return run(session.searched, results, signal, answered);
  };
  const form = h("form", { role: "search", onsubmit: (event) => { event.preventDefault(); ask(event.submitter?.value === "answer"); } },
    field("Question", query),
    h("div", { class: "row" },
      h("button", { class: "primary" }, "Search"),
      h("button", { value: "answer" }, "Answer"),
      names.length > 1 ? field("in", name) : h("span", {}, "in ", h("strong", {}, chosen))),
    h("details", {}, h("summary", {}, "Options"),
      h("div", { class: "row" }, field("Results", k), field("Strategy", strategy)),
      check("also what applies in other regions", region), check("also what applies at other times", time)));
  if (last.response && ofThis(last, chosen)) fill(results, shown(last));
  if (ofThis(session.conversation, chosen)) before(results, conversation(results, signal));
  return [h("h1", {}, "Search"), form, session.admin && impersonationForm(), results];
}

// who tells one visitor, and whom they impersonate, from another.
const who = () => JSON.stringify([session.identity.tenant, session.identity.subject, session.impersonated]);

// ofThis reports what the visitor, as they are now, asked of a collection.
const ofThis = (asked, collection) => asked?.who === who() && asked.collection === collection;

// before shows a conversation above the passages of its first question, or alone if
// others followed.
function before(results, section) {
  if (session.conversation.turns.length > 1) fill(results, section);
  else results.prepend(section);
}

async function run(search, results, signal, answered) {
  fill(results, h("p", {}, "Searching…"));
  try {
    [search.response, search.timings] = await call("POST", collection(search.collection, "search"), { body: requestOf(search), impersonates: true, signal, timed: true });
    fill(results, shown(search));
    say(`${plural(search.response.results.length, "passage")} found`);
    if (answered) await answerTo(search, results, signal);
  } catch (error) {
    if (error.name !== "AbortError") fill(results, failure(error));
  }
}

function requestOf({ query, k, strategy, region, time }) {
  return { query, k, explain: true, strategy: strategy || undefined, scope: { any_region: region, any_time: time } };
}

function shown({ collection: name, response, timings }) {
  const { results, counts, strategy, generation, plan, degraded } = response;
  const took = timings.find(([name]) => name === "total")?.[1];
  return [
    h("h2", {}, results.length ? plural(results.length, "passage") : "Nothing found"),
    h("p", { class: "meta" }, `Among ${plural(counts.visible, "document")} that ${session.impersonated ? session.impersonated.subject : "you"} may read`,
      counts.out_of_scope > 0 && `, of which ${count(counts.out_of_scope)} do not apply here and now`, `. ${took} ms.`),
    degraded.length > 0 && h("p", { class: "warning" }, `Left out: ${degraded.join(", ")}.`),
    h("ol", { class: "results" }, results.map((result, i) => h("li", {}, passage(name, result, i)))),
    h("details", {}, h("summary", {}, "How it was searched"),
      table("Stages", ["Stage", "Milliseconds"], timings.map(([name, ms]) => [name, String(ms)])),
      h("p", { class: "meta" }, `Strategy ${strategy}, generation ${generation}, plan ${plan}.`)),
  ];
}

// evidence is the address of a passage in its document.
export function evidence(name, { document, start, end, version }) {
  return `#/document/${encodeURIComponent(name)}/${encodeURIComponent(document)}?${new URLSearchParams({ start, end, version })}`;
}

function passage(name, result, i) {
  const legs = Object.entries(result.explain?.legs ?? {});
  return h("article", { id: `passage${i + 1}`, tabindex: "-1", "aria-label": `${i + 1}: ${result.title || result.document}` },
    h("h3", {}, h("a", { href: evidence(name, result) }, result.title || result.document)),
    h("p", { class: "meta" }, [result.document, ...result.headings].join(" › ")),
    h("blockquote", {}, result.text),
    h("details", {}, h("summary", {}, `Why it is here (score ${result.score.toPrecision(3)})`),
      table("Ranks and scores", ["Leg", "Rank", "Score"], legs.map(([name, leg]) => [name, String(leg.rank), leg.score.toPrecision(4)]))),
    session.admin && h("p", { class: "meta" }, h("a", { href: `#/access/${encodeURIComponent(name)}?${whose(result.document)}` }, "Who may read it, and why")));
}

function whose(document) {
  return new URLSearchParams({ document, subject: (session.impersonated ?? session.identity).subject });
}

