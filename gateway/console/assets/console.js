"use strict";
// Keys, copying, local times and progress. All pages work without this.
(() => {
  const help = document.getElementById("help");
  const all = (css, root = document) => [...root.querySelectorAll(css)];
  const one = (css, root = document) => root.querySelector(css);

  // Times in the time zone of the browser.
  const forms = {
    long: new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" }),
    short: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" }),
  };
  const localise = (root) => {
    for (const time of all("time[data-form]", root)) {
      time.textContent = forms[time.dataset.form].format(new Date(time.dateTime));
    }
  };

  // Buttons that copy the text beside them.
  const addCopyButtons = (root) => {
    for (const box of all("[data-copy]", root)) {
      const text = one("pre", box);
      text.textContent.includes("https://assay.example.com") &&
        (text.textContent = text.textContent.replaceAll("https://assay.example.com", location.origin));
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 2000);
      });
      box.append(button);
    }
  };

  // Progress of a running execution, while somebody looks at it.
  const follow = () => {
    const summary = one("[data-progress]");
    if (!summary) return;
    let tag = "";
    const refresh = async () => {
      if (document.hidden) return;
      const headers = tag ? { "If-None-Match": tag } : {};
      const response = await fetch(summary.dataset.progress, { headers }).catch(() => null);
      if (!response || response.status === 304) return;
      if (!response.ok || response.redirected) return clearInterval(timer);
      tag = response.headers.get("ETag") || "";
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = one("#summary", page);
      if (!fresh.dataset.progress) return location.reload();
      one("#summary").replaceChildren(...fresh.childNodes);
      localise(one("#summary"));
    };
    const timer = setInterval(refresh, 2000);
  };

  // Selection of tests to judge.
  const review = one("#review");
  const boxes = all("[name=report][type=checkbox]");
  const count = () => {
    const selected = boxes.filter((box) => box.checked).length;
    if (!review || !boxes.length) return;
    one("#selected").textContent = `${selected} selected`;
    review.hidden = !selected && !one("[name=fingerprint], [role=alert]", review);
  };
  for (const group of all(".group")) {
    const every = one(".all", group);
    if (!every) continue;
    every.hidden = false;
    every.addEventListener("change", () => {
      for (const box of all("[name=report]", group)) box.checked = every.checked;
    });
  }
  addEventListener("change", count);

  // Keys.
  const rows = all(".row").filter((row) => one("a", row));
  let at = rows.findIndex((row) => "#" + row.id === location.hash);
  const go = (to) => {
    if (to < 0 || to >= rows.length) return;
    rows[at]?.classList.remove("cur");
    at = to;
    rows[at].classList.add("cur");
    one("a", rows[at]).focus();
  };
  const link = (rel) => one(`a[rel=${rel}]`);
  const step = (by) => {
    if (rows.length) return go(at + by);
    link(by > 0 ? "next" : "prev")?.click();
  };
  const judge = (key) => review && one(`[data-key=${key}]`, review)?.click();
  const actions = {
    j: () => step(1),
    k: () => step(-1),
    u: () => link("up")?.click(),
    x: () => one("[type=checkbox]", rows[at] || document.createElement("p"))?.click(),
    a: () => judge("a"),
    r: () => judge("r"),
    i: () => judge("i"),
    "/": () => one("input[name=q]")?.focus(),
    "?": () => help.showModal(),
  };
  const typing = (target) => target.matches("input:not([type=checkbox]), select, textarea");
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || help.open) return;
    const action = actions[event.key];
    if (!action || (localStorage.getItem("keys") === "off" && event.key !== "?")) return;
    event.preventDefault();
    action();
  });
  const keys = one("#keys");
  keys.checked = localStorage.getItem("keys") !== "off";
  keys.addEventListener("change", () => localStorage.setItem("keys", keys.checked ? "on" : "off"));

  count();
  localise(document);
  addCopyButtons(document);
  follow();
})();
