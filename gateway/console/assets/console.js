"use strict";
// Keys, copying, local times and progress. All pages work without this.
(() => {
  const store = sessionStorage;
  const make = (name, of) => Object.assign(document.createElement(name), of);
  const all = (css, root = document) => [...root.querySelectorAll(css)];
  const one = (css, root = document) => root.querySelector(css);
  const help = one("#help");

  // Times in the time zone of the browser.
  const forms = {
    long: new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" }),
    short: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" }),
    day: new Intl.DateTimeFormat(undefined, { dateStyle: "medium" }),
  };
  const ago = new Intl.RelativeTimeFormat(undefined, { style: "short" });
  const HOUR = 3_600_000;
  const shown = (time, form) => {
    if (form === "until") {
      const isMidnight = time.getHours() + time.getMinutes() === 0;
      return isMidnight ? forms.day.format(time - 1) : forms.long.format(time);
    }
    const age = Date.now() - time;
    if (form === "for") {
      const minutes = Math.max(0, Math.floor(age / 60_000));
      return minutes < 60 ? `for ${minutes} min` : `for ${Math.floor(minutes / 60)} h ${minutes % 60} min`;
    }
    if (form === "long" || time.getFullYear() !== new Date().getFullYear()) return forms.long.format(time);
    if (age < 0 || age >= 24 * HOUR) return forms.short.format(time);
    return age < HOUR ? ago.format(-Math.floor(age / 60_000), "minute") : ago.format(-Math.floor(age / HOUR), "hour");
  };
  const localise = (root) => {
    for (const element of all("time[data-form]", root)) {
      const time = new Date(element.dateTime);
      element.textContent = shown(time, element.dataset.form);
      element.title = `${forms.long.format(time)} (${element.title})`;
    }
    for (const link of all("a[data-time]", root))
      link.title = link.title.replace(/^.*?UTC/, forms.long.format(new Date(link.dataset.time)));
  };

  // Days above the columns of a grid, each at its first one.
  let before = "";
  for (const column of all(".days span")) {
    const day = new Date(column.dataset.time).toDateString();
    const [, month, date] = day.split(" ");
    column.innerHTML = (before.includes(month) ? "" : `<b>${month}</b>`) + (day === before ? "" : +date);
    before = day;
  }

  // Buttons that copy the text beside them, as a whole also if the page has a part of it.
  const addCopyButtons = (root) => {
    for (const box of all("[data-copy]", root)) {
      const [text, whole] = [one("pre", box), box.dataset.copy];
      if ("host" in box.dataset)
        text.textContent = text.textContent.replaceAll("https://assay.example.com", location.origin);
      const copy = async () => {
        const file = whole && (await fetch(whole));
        if (file.redirected || file.ok === false) throw file;
        await navigator.clipboard.writeText(file ? await file.text() : text.textContent);
        return "Copied";
      };
      const button = make("button", { type: "button", textContent: "Copy" });
      button.addEventListener("click", async () => {
        // Over plain http, browsers let users copy only.
        button.textContent = await copy().catch(() => (getSelection().selectAllChildren(text), "Selected"));
        setTimeout(() => (button.textContent = "Copy"), 2000);
      });
      box.append(button);
    }
  };

  // Selection of tests to judge: causes as a whole, and tests.
  const review = one("#review");
  // Forms of tests that are selected say how many these are. Others are about the tests of their page.
  const total = one("#selected");
  const tests = "[name=report][type=checkbox]";
  const boxes = all(tests);
  const causes = all("input.all");
  const within = (cause) => all(tests, cause.closest(".group") || document);
  const count = () => {
    if (!total) return;
    const whole = causes.filter((box) => box.checked);
    const covered = new Set(whole.flatMap(within));
    const parts = whole.map((box) => Number(box.dataset.count));
    const others = boxes.filter((box) => box.checked && !covered.has(box)).length;
    const selected = parts.reduce((sum, part) => sum + part, others);
    total.textContent = `${Number.isNaN(selected) ? "All" : selected} selected`;
    review.hidden = selected === 0 && !one("[role=alert]", review);
  };
  for (const cause of causes) {
    cause.addEventListener("change", () => {
      for (const box of within(cause)) box.checked = cause.checked;
    });
    for (const box of within(cause))
      box.addEventListener("change", () => box.checked || (cause.checked = false));
  }
  addEventListener("change", count);
  // Browsers fill forms in again after scripts have run.
  addEventListener("pageshow", count);
  const isDirty = () =>
    boxes.concat(causes).some((box) => box.checked !== box.defaultChecked) ||
    all("input:not([type=checkbox]), textarea").some((field) => field.value !== field.defaultValue);

  // Days of the time zone of the browser.
  const dayAfter = (days) => {
    const day = new Date();
    day.setDate(day.getDate() + days);
    // Year, month and day, as in fields.
    return day.toLocaleDateString("sv");
  };
  for (const field of all("input[type=date]")) {
    const offset = make("input", { type: "hidden", name: field.name + "Offset" });
    const set = () => {
      const time = new Date(field.value + "T00:00");
      // A day ends with the start of the next one.
      if ("last" in field.dataset) time.setDate(time.getDate() + 1);
      offset.value = offset.defaultValue = field.value && time.getTimezoneOffset();
    };
    field.addEventListener("change", set);
    field.after(offset);
    set();
    if (field.dataset.days) {
      field.min = dayAfter(0);
      field.max = dayAfter(field.dataset.days - 1);
    }
  }
  for (const label of all(".utc")) label.remove();

  // A judgement that is announced can be undone for ten seconds. The announcement is not part of the address.
  setTimeout(() => one(".done + .undo")?.remove(), 10_000);
  const address = new URL(location);
  for (const name of ["reviewed", "reset", "newly_muted", "review", "judged", "undone"])
    address.searchParams.delete(name);
  address.href === location.href || history.replaceState(history.state, "", address);

  // Texts that were typed and not sent, or whose judgement was undone, come back in the form of the same cause.
  const cause = one("#review [type=hidden][name=cause]");
  const draft = `draft ${location.pathname} ${cause?.value || address.searchParams.get("fingerprint")}`;
  const texts = review ? all("[name=comment], [name=ticket], [name=until]", review) : [];
  const keep = (sent) =>
    store.setItem(draft, JSON.stringify({ sent, values: texts.map((text) => text.value) }));
  review?.addEventListener("input", () => keep(false));
  review?.addEventListener("submit", () => {
    keep(true);
    store.setItem("sent", draft);
  });
  const restore = () => {
    const { sent, values } = JSON.parse(store.getItem(draft) || "{}");
    if (!values || (sent && !one("#undone"))) return;
    texts.forEach((text, index) => {
      if (text.value !== text.defaultValue || !values[index]) return;
      text.value = values[index];
      text.dispatchEvent(new Event("change", { bubbles: true }));
    });
  };

  // What was sent last comes back after the login, if that was after the end of the session.
  const sent = store.getItem("sent");
  store.removeItem("sent");
  if (sent && address.searchParams.has("ended"))
    store.setItem(sent, store.getItem(sent).replace('"sent":true', '"sent":false'));

  const parsed = async (response) => new DOMParser().parseFromString(await response.text(), "text/html");

  // Progress of a running execution, while somebody looks at it.
  const follow = () => {
    const summary = one("#summary[data-progress]");
    if (!summary) return;
    const shown = Number(summary.dataset.done);
    let tag = "";
    const say = (text, href, label) => {
      const news = one("#news");
      if (news.textContent === text + label) return;
      news.replaceChildren(text, make("a", { href, textContent: label }));
      news.hidden = false;
    };
    const here = location.pathname + location.search;
    const refresh = async () => {
      if (document.hidden) return;
      const headers = tag ? { "If-None-Match": tag } : {};
      const response = await fetch(summary.dataset.progress, { headers }).catch(() => null);
      if (response?.redirected) {
        clearInterval(timer);
        const login = "/login?next=" + encodeURIComponent(here);
        return say("Stopped: your session has ended. ", login, "Log in again");
      }
      if (!response?.ok) return;
      tag = response.headers.get("ETag") || "";
      const fresh = one("#summary", await parsed(response));
      const focused = summary.contains(document.activeElement) && document.activeElement;
      summary.replaceChildren(...fresh.childNodes);
      localise(summary);
      const same = (link) => focused && link.getAttribute("href") === focused.getAttribute("href");
      all("a", summary).find(same)?.focus();
      document.title = fresh.dataset.title + " · Assay";
      if (!fresh.dataset.progress) {
        clearInterval(timer);
        if (!isDirty() && document.activeElement === document.body) return location.reload();
        return say("The execution has ended. ", here, "Show all results");
      }
      const more = Number(fresh.dataset.done) - shown;
      if (more > 0) say(`${more} new ${more === 1 ? "result" : "results"}. `, here, "Show");
    };
    const timer = setInterval(refresh, 2000);
  };

  // The log of a running test, while somebody looks at it.
  const followLog = () => {
    const log = one("#log[data-follow]");
    if (!log) return;
    const toEnd = () => {
      const text = one("pre", log);
      if (text) text.scrollTop = text.scrollHeight;
    };
    const refresh = async () => {
      if (document.hidden) return;
      const response = await fetch(log.dataset.follow).catch(() => null);
      if (response?.redirected) return clearInterval(timer);
      if (!response?.ok) return;
      const fresh = one("#log", await parsed(response));
      const before = one("pre", log);
      const isRead = before && before.scrollTop + before.clientHeight < before.scrollHeight - 40;
      if (!isRead && getSelection().isCollapsed) {
        const isFocused = document.activeElement === before && before;
        log.replaceChildren(...fresh.childNodes);
        if (isFocused) one("pre", log)?.focus({ preventScroll: true });
        toEnd();
      }
      if (!fresh.dataset.follow) {
        clearInterval(timer);
        if (!isDirty() && !isRead) location.reload();
      }
    };
    const timer = setInterval(refresh, 2000);
    toEnd();
  };

  // Keys.
  const rows = all(".row").filter((row) => one("a", row));
  const start = location.hash.slice(1) || store.getItem("row");
  store.removeItem("row");
  let at = start ? rows.findIndex((row) => row.id === start) : -1;
  const mark = (to) => {
    rows[at]?.classList.remove("cur");
    at = to;
    rows[at].classList.add("cur");
  };
  const go = (to) => {
    if (to < 0 || to >= rows.length) return;
    mark(to);
    one("a", rows[at]).focus();
  };
  addEventListener("focusin", (event) => {
    const to = rows.indexOf(event.target.closest?.(".row"));
    if (to >= 0) mark(to);
  });
  const group = () => rows[at]?.closest(".group");
  const goToCause = (by) => {
    const others = rows.filter((row) => row.closest(".group") !== group());
    const before = others.filter((row) => rows.indexOf(row) < at);
    // The first row of the cause.
    const of = by > 0 ? others[before.length] : before.at(-1) && one(".row", before.at(-1).closest(".group"));
    go(rows.indexOf(of));
  };
  // After a judgement, keys go on from the row.
  review?.addEventListener("submit", () => rows[at] && store.setItem("row", rows[at].id));
  const link = (rel) => one(`a[rel=${rel}]`);
  const step = (by) => {
    if (rows.length) return go(at + by);
    link(by > 0 ? "next" : "prev")?.click();
  };
  const actions = {
    j: () => step(1),
    k: () => step(-1),
    u: () => link("up")?.click(),
    x: () => rows[at] && one("[type=checkbox]", rows[at])?.click(),
    c: () => group() && one("input.all", group())?.click(),
    n: () => goToCause(1),
    p: () => goToCause(-1),
    t: () => one("[data-key=t]")?.click(),
    z: () => one(".undo button")?.click(),
    m: () => one("#review [name=comment]")?.focus(),
    "/": () => one("input[name=q]")?.focus(),
    "?": () => help.showModal(),
  };
  for (const key of "ari")
    actions[key] = () => review && !review.hidden && one(`[data-key=${key}]`, review)?.click();
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.target.matches("input:not([type=checkbox]), select, textarea")) return;
    // A key that is held moves on. It must not judge causes that nobody has seen.
    if (event.repeat && !"jknp".includes(event.key)) return;
    const isDecision = event.key === "Enter" && event.target === document.body && one(".triage");
    const action = isDecision ? actions.a : actions[event.key];
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
  restore();
  follow();
  followLog();
})();
