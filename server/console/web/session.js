// Who the visitor is. A token lives in this tab's sessionStorage, goes into the
// Authorization header alone, and is gone with the tab.

const key = "sluice.session";

let kept = JSON.parse(sessionStorage.getItem(key) ?? "null");

export const session = {
  identity: null, // of GET v1/identity
  impersonated: null, // the principal that an administrator impersonates
  conversation: null, // the questions and answers since the last that followed from none
  searched: null, // the last search with what it found, shown again on the way back from a document

  get known() { return kept !== null; },
  get admin() { return this.identity?.role === "admin"; },

  headers() {
    if (kept?.token) return { Authorization: `Bearer ${kept.token}` };
    if (kept?.demo) return { "X-Sluice-Principal": kept.demo };
    return {};
  },

  enter(credentials) {
    kept = credentials;
    sessionStorage.setItem(key, JSON.stringify(kept));
  },

  leave() {
    kept = null;
    this.identity = this.impersonated = this.conversation = this.searched = null;
    sessionStorage.removeItem(key);
  },
};
