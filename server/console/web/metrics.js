// Prometheus' text format.

// families are the samples by name: [{labels, value}].
export function families(text) {
  const all = {};
  for (const line of text.split("\n")) {
    const sample = /^([a-zA-Z_:]\w*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (sample) (all[sample[1]] ??= []).push({ labels: labelsOf(sample[2] ?? ""), value: Number(sample[3].replace("Inf", "Infinity")) });
  }
  return all;
}

function labelsOf(text) {
  const labels = {};
  for (const [, name, value] of text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
    labels[name] = value.replace(/\\(.)/g, (_, c) => c === "n" ? "\n" : c);
  }
  return labels;
}

export const sum = (samples = []) => samples.reduce((total, { value }) => total + value, 0);

// quantile estimates, as Prometheus does, from the buckets of histograms, which
// are added up; null without observations.
export function quantile(buckets, q) {
  const counts = new Map();
  for (const { labels, value } of buckets) {
    const bound = Number(labels.le.replace("Inf", "Infinity"));
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  const bounds = [...counts.keys()].sort((a, b) => a - b);
  const rank = q * counts.get(Infinity);
  if (!(rank > 0)) return null;
  let [below, lower] = [0, 0];
  for (const bound of bounds) {
    const upTo = counts.get(bound);
    if (upTo >= rank) return bound === Infinity ? lower : lower + (bound - lower) * (rank - below) / (upTo - below);
    [below, lower] = [upTo, bound];
  }
  return null;
}
