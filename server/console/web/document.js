// A document, with the evidence marked in it.
import { call, collection } from "./api.js";
import { date, facts, h, plural } from "./dom.js";
import { session } from "./session.js";

// Of a longer document only what is around the evidence is shown at first.
const around = 20_000; // bytes

export async function view({ rest: [name, key], query, signal }) {
  const document = await call("GET", collection(name, "documents", key), { impersonates: true, signal });
  const [start, end, version] = ["start", "end", "version"].map((n) => Number(query.get(n)));
  const known = end > start && version === document.version;
  const body = h("div", { class: "document" });
  body.append(...pieces(document.text, known ? start : 0, known ? end : 0, () => body.replaceChildren(...pieces(document.text, start, end))));
  return [
    h("p", {}, h("a", { href: `#/search/${encodeURIComponent(name)}` }, "Back to the search")),
    h("h1", {}, document.title || document.key),
    facts([
      ["Key", document.key], ["Format", document.format], ["Version", `${document.version}, of ${date(document.updated)}`],
      ["Cut", `${plural(document.chunks, "passage")} by ${document.chunker}`],
      ["Readers", document.readers ? document.readers.join(", ") || "nobody" : null],
      ["Attributes", Object.entries(document.attributes ?? {}).map(([n, v]) => `${n}: ${JSON.stringify(v)}`).join(", ")],
      ["Applies in", document.regions?.join(", ")],
      ["From", document.valid_from && date(document.valid_from)], ["Until", document.valid_until && date(document.valid_until)],
    ]),
    session.admin && h("p", {}, h("a", { href: `#/access/${encodeURIComponent(name)}?${new URLSearchParams({ document: key })}` }, "Who may read it, and why")),
    version && !known ? h("p", { class: "warning" }, "The document has changed since the search, so the evidence is not marked. Search again.") : null,
    body,
  ];
}

// pieces are the text, with bytes start to end of its UTF-8 marked; all: what
// to do to see the rest of a long one.
function pieces(text, start, end, all) {
  const bytes = new TextEncoder().encode(text);
  const cut = (from, to) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(from, to));
  const [from, to] = all && bytes.length > 4 * around ? [border(bytes, start - around), border(bytes, end + around)] : [0, bytes.length];
  const more = () => h("p", {}, h("button", { onclick: all }, `Show all ${plural(bytes.length, "byte")}`));
  return [
    from > 0 && more(), cut(from, start), end > start && h("mark", {}, cut(start, end)), cut(end, to), to < bytes.length && more(),
  ].filter(Boolean);
}

// border moves a place inside a character to its beginning.
function border(bytes, place) {
  if (place <= 0) return 0;
  if (place >= bytes.length) return bytes.length;
  while ((bytes[place] & 0xc0) === 0x80) place--;
  return place;
}
