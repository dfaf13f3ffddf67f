/* A browser starts no worker for a page that was opened as a file. There the search's worker is a hidden frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      this.scope = new Promise((ready) => {
        frame.onload = () => {
          const scope = frame.contentWindow;
          scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          scope.importScripts = (...urls) => Promise.all(urls.map((each) => load(scope, each)));
          load(scope, url).then(() => ready(scope));
        };
      });
      this.terminate = () => frame.remove();
      document.body.append(frame);
    }

    postMessage(data) {
      this.scope.then((scope) => scope.dispatchEvent(new scope.MessageEvent("message", { data })));
    }
  };
}

function load(scope, url) {
  return new Promise((ready, failed) => {
    const script = scope.document.createElement("script");
    Object.assign(script, { src: url, onload: ready, onerror: failed });
    scope.document.body.append(script);
  });
}
