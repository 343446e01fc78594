// Elements are built, never parsed: whatever a document holds stays text.

// h makes an element. Properties that are functions listen to the event they are
// named after (onclick); true and false set and leave out an attribute.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(3).filter((child) => child != null && child !== false));
  return element;
}

let fields = 0;

// field is a control with its label.
export function field(label, control, hint) {
  control.id ||= `field${++fields}`;
  const parts = [h("label", { for: control.id }, label), control];
  if (hint) {
    const id = `${control.id}-hint`;
    control.setAttribute("aria-describedby", id);
    parts.push(h("small", { id }, hint));
  }
  return h("div", { class: "field" }, parts);
}

export function check(label, control) {
  control.type = "checkbox";
  return h("label", { class: "check" }, control, ` ${label}`);
}

export function select(options, chosen) {
  return h("select", {}, options.map(([value, text]) => h("option", { value, selected: value === chosen }, text ?? value)));
}

// table has a caption, head cells, and rows of cells; a first cell is its row's head.
export function table(caption, head, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, cell)))),
      h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {},
        h("th", { scope: "row" }, first), rest.map((cell) => h("td", {}, cell)))))));
}

// facts is a list of terms and what is said of them.
export function facts(pairs) {
  return h("dl", {}, pairs.filter(([, value]) => value != null && value !== "")
    .map(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
}

// fill replaces what an element holds.
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child != null && child !== false));
}

// say tells a screen reader what happened.
export function say(text) {
  document.getElementById("status").textContent = text;
}

// failure shows an error and what to do about it.
export function failure(error) {
  return h("p", { class: "failure", role: "alert" }, error.message);
}

// confirmed asks before what cannot be taken back. It resolves to yes or no.
export function confirmed(question, verb) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-label": question, onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("form", { method: "dialog" },
        h("p", {}, question),
        h("p", { class: "row" },
          h("button", { value: "yes", class: "primary" }, verb),
          h("button", { value: "no", autofocus: true }, "Keep things as they are"))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

export const count = (n) => n.toLocaleString("en");

export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export const date = (text) => new Date(text).toLocaleString();
