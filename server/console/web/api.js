// The daemon's API. Paths are relative to the page, so that a proxy may put
// both below a prefix.
import { session } from "./session.js";

// Problem is an answer that is an error; its message says what to do.
export class Problem extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

// path joins segments, each escaped.
const path = (...segments) => segments.map(encodeURIComponent).join("/");

export const collection = (name, ...more) => path("v1", "collections", name, ...more);

// header is JSON in ASCII, as a header must be.
const header = (value) => JSON.stringify(value).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

async function send(method, target, { body, impersonates, accept, signal } = {}) {
  const headers = session.headers();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (accept) headers.Accept = accept;
  if (impersonates && session.impersonated) headers["X-Sluice-Impersonate"] = header(session.impersonated);
  let response;
  try {
    response = await fetch(target, {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The daemon cannot be reached. Is it running?");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  return new Problem(response.status, problem.detail ?? problem.title ?? `The daemon answered ${response.status}.`);
}

// call returns an answer's JSON, and its time on the daemon in milliseconds by stage.
export async function call(method, target, options) {
  const response = await send(method, target, options);
  const answer = response.status === 204 ? null : await response.json();
  return options?.timed ? [answer, timings(response.headers.get("Server-Timing") ?? "")] : answer;
}

function timings(text) {
  return text.split(", ").filter(Boolean).map((stage) => {
    const [name, took] = stage.split(";dur=");
    return [name, Number(took)];
  });
}

export const text = async (target, signal) => (await send("GET", target, { signal })).text();

// events yields the data of a stream of server-sent events. EventSource would
// need the token in the URL.
export async function* events(method, target, options) {
  const response = await send(method, target, { ...options, accept: "text/event-stream" });
  let rest = "";
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + part).split("\n\n");
    rest = blocks.pop();
    for (const line of blocks.flatMap((block) => block.split("\n"))) {
      if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
    }
  }
}
