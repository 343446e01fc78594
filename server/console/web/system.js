// Devices, queues and latency, read from the daemon's metrics every two seconds.
import { text } from "./api.js";
import { count, failure, fill, h, table } from "./dom.js";
import { families, quantile, sum } from "./metrics.js";

const every = 2000; // milliseconds

export async function view({ signal }) {
  const body = h("div");
  const pause = h("button", { "aria-pressed": "false", onclick: () => pause.setAttribute("aria-pressed", String(pause.getAttribute("aria-pressed") === "false")) }, "Stand still");
  const read = async () => fill(body, shown(families(await text("metrics", signal))));
  await read();
  const timer = setInterval(() => {
    if (pause.getAttribute("aria-pressed") === "true" || document.hidden || body.contains(document.activeElement)) return;
    read().catch((error) => error.name !== "AbortError" && fill(body, failure(error)));
  }, every);
  signal.addEventListener("abort", () => clearInterval(timer));
  return [h("h1", {}, "System"), h("p", {}, "Since the daemon’s start, over all tenants. ", pause), body];
}

function shown(all) {
  return [
    h("h2", {}, "Devices"), devices(all),
    h("h2", {}, "Queues"), queues(all),
    h("h2", {}, "Requests"), requests(all),
    table("Others", ["What", "Count"], [
      ["Requests under way", number(all, "sluice_http_requests_in_flight")],
      ["Requests turned away for want of a slot", number(all, "sluice_http_requests_rejected_total")],
      ["Reindex jobs under way", number(all, "sluice_reindex_running")],
      ["Decisions denied because a policy failed", number(all, "sluice_policy_faults_total")],
      ["Audit records not written", number(all, "sluice_audit_unwritten_total")],
    ]),
  ];
}

const number = (all, name) => count(sum(all[name]));

function devices(all) {
  const failures = all.sluice_device_failures_total ?? [];
  return table("Which run models", ["Model", "Device", "State", "Failed batches"], (all.sluice_device_up ?? []).map(({ labels, value }) => [
    labels.model, labels.device, value === 1 ? "in use" : "fails its probe",
    count(sum(failures.filter((f) => f.labels.model === labels.model && f.labels.device === labels.device)))]));
}

function queues(all) {
  return table("Texts that wait for a device", ["Model", "Priority", "Tokens waiting", "Wait, median", "Wait, 95 of 100", "Batch, median"], (all.sluice_queue_tokens ?? []).map(({ labels, value }) => {
    const same = (s) => s.labels.model === labels.model && s.labels.priority === labels.priority;
    return [labels.model, labels.priority, count(value), time(all, "sluice_queue_wait_seconds", same, 0.5), time(all, "sluice_queue_wait_seconds", same, 0.95),
      time(all, "sluice_batch_duration_seconds", same, 0.5)];
  }));
}

function requests(all) {
  const routes = new Map();
  for (const { labels, value } of all.sluice_http_requests_total ?? []) {
    const name = `${labels.method} ${labels.route}`;
    const of = routes.get(name) ?? { labels, answered: 0, failed: 0 };
    of.answered += value;
    if (labels.code >= "500") of.failed += value;
    routes.set(name, of);
  }
  const rows = [...routes].sort(([, a], [, b]) => b.answered - a.answered).map(([name, { labels, answered, failed }]) => {
    const same = (s) => s.labels.route === labels.route && s.labels.method === labels.method;
    return [name, count(answered), count(failed), ...[0.5, 0.95, 0.99].map((q) => time(all, "sluice_http_request_duration_seconds", same, q))];
  });
  return table("Latency by route", ["Route", "Answered", "Failed", "Median", "95 of 100", "99 of 100"], rows);
}

function time(all, name, of, q) {
  const seconds = quantile((all[`${name}_bucket`] ?? []).filter(of), q);
  return seconds === null ? "–" : `${(seconds * 1000).toPrecision(2)} ms`.replace("e+3", " 000");
}
