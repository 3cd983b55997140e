// Browsers give no worker to a page that was opened from a disk: there the search of the
// guide runs in a hidden frame, which receives and sends the same messages.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.inside = new Promise((ready) => {
        frame.addEventListener("load", () => {
          const inside = frame.contentWindow;
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.addEventListener("load", () => ready(inside));
          script.src = address;
          inside.document.body.append(script);
        }, { once: true });
      });
      document.body.append(frame);
    }

    async postMessage(data) {
      const inside = await this.inside;
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }
  };
  window.Worker = window.IFrameWorker;
}
