// SPDX-License-Identifier: MIT-0
// The table of samples. Model text reaches the page through textContent only.
"use strict";
(() => {
  const { runs, languages, questions, samples } = JSON.parse(document.getElementById("data").textContent);
  const SIZE = 25;
  const $ = (id) => document.getElementById(id);
  const controls = ["search", "run", "language", "slice", "fault", "order"].map($);
  const body = document.querySelector("#rows tbody");
  const codes = Object.keys(languages);
  const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\p{Surrogate}]/gu;
  let found = samples;
  let page = 0;

  const visible = (text) =>
    text.replace(hidden, (c) => `⟦U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`);
  const language = (code) => languages[code] || code || "–";
  const percent = (share) => (share === null ? "–" : `${Math.round(100 * share)}\u00a0%`);
  const words = (name) => name.replaceAll("_", " ");

  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    for (const child of children) node.append(child instanceof Node ? child : visible(String(child)));
    return node;
  }

  const tint = (code) => (codes.includes(code) ? `l${codes.indexOf(code) % 8}` : "");

  // The parsed text in its segments: tinted and named by language, a wavy line under what was not asked for.
  function coloured(sample, part, target) {
    const { at, segments } = sample[part];
    const text = typeof at === "string" ? at : sample.text.slice(at[0], at[1]);
    const box = el("div", { class: "text", dir: "auto", tabindex: "0", role: "group", "aria-label": part });
    if (!text) box.append(el("em", {}, "nothing"));
    let done = 0;
    let before = null;
    for (const [start, end, code] of segments) {
      if (start > done) box.append(visible(text.slice(done, start)));
      const named = code !== "neutral";
      const off = named && code !== target ? " off" : "";
      const attributes = { class: `seg ${named ? tint(code) : "plain"}${off}`, title: language(code) };
      if (named && code !== before) attributes["data-l"] = code;
      if (named) before = code;
      box.append(el("span", attributes, text.slice(start, end)));
      done = end;
    }
    box.append(visible(text.slice(done)));
    return box;
  }

  function describe(part, target) {
    if (!part.segments.length) return `asked for ${language(target)}; nothing was written`;
    if (part.label === "neutral") return "no words";
    if (part.abstained) return "the detector would not decide";
    const listed = Object.entries(part.shares).map(([code, share]) => `${language(code)} ${percent(share)}`);
    return `asked for ${language(target)}; found ${listed.join(", ") || part.label || "nothing"}`;
  }

  function brief(part, target) {
    if (!part.segments.length) return "nothing";
    if (part.label === "neutral") return "no words";
    if (part.abstained) return "unsure";
    if (part.label === "mixed") return `mixed, ${language(target)} ${percent(part.share)}`;
    return `${language(part.label)} ${percent(part.shares[part.label] ?? null)}`;
  }

  function pairs(entries) {
    const table = el("table", { class: "terms" });
    for (const [name, value] of entries)
      table.append(el("tr", {}, el("th", { scope: "row" }, words(name)), el("td", { class: "n" }, value ?? "–")));
    return table;
  }

  function detail(sample) {
    const [asked, reasoning, answer] = sample.asked;
    const raw = el("details", {}, el("summary", {}, "Raw text"));
    raw.addEventListener("toggle", () => {
      if (raw.open && raw.children.length === 1) raw.append(el("div", { class: "text", dir: "auto" }, sample.text));
    });
    const judged = [
      ...Object.entries(sample.terms),
      ["reward", sample.reward],
      ["repetition found", sample.repetition],
      ["copied from question", sample.copied],
      ["known answer", sample.gold],
      ["answer read as", sample.read],
      ["grade", sample.grade],
      ["grading rule", sample.rule],
      ...Object.entries(sample.lengths),
    ];
    const verdict = el("details", {}, el("summary", {}, "Verdict, term by term"), pairs(judged));
    const cell = el("td", { colspan: "8" });
    cell.append(
      el("h4", {}, `Question in ${language(asked)}`),
      el("div", { class: "text", dir: "auto" }, questions[sample.q]),
      el("h4", {}, `Reasoning: ${describe(sample.reasoning, reasoning)}`),
      coloured(sample, "reasoning", reasoning),
      el("h4", {}, `Answer: ${describe(sample.answer, answer)}`),
      coloured(sample, "answer", answer),
      verdict,
      raw,
    );
    return el("tr", { class: "detail" }, cell);
  }

  function row(sample) {
    const [, reasoning, answer] = sample.asked;
    const button = el("button", { type: "button", class: "open", "aria-expanded": "false" }, `${sample.id}/${sample.n}`);
    const faults = el("td", {});
    for (const fault of sample.faults) faults.append(el("span", { class: "fault" }, fault), " ");
    const asked = reasoning === answer ? language(answer) : `${language(reasoning)} → ${language(answer)}`;
    const cell = (head, text, kind) => el("td", { "data-h": head, ...(kind ? { class: kind } : {}) }, text);
    const line = el(
      "tr",
      { class: "sample" },
      el("td", {}, button),
      cell("Run", runs[sample.run]),
      cell("Asked", asked + (sample.crossed ? ` (from ${language(sample.asked[0])})` : "")),
      cell("Reasoning", brief(sample.reasoning, reasoning)),
      cell("Answer", brief(sample.answer, answer)),
      cell("Grade", sample.grade ?? "–"),
      cell("Reward", sample.reward === null ? "–" : sample.reward.toFixed(2), "n"),
      faults,
    );
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!open));
      if (open) line.nextElementSibling.remove();
      else line.after(detail(sample));
    });
    return line;
  }

  const ORDERS = {
    worst: (a, b) => a.reward - b.reward,
    best: (a, b) => b.reward - a.reward,
    long: (a, b) => b.text.length - a.text.length,
    id: (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.n - b.n || a.run - b.run),
  };

  function show() {
    const last = Math.max(0, Math.ceil(found.length / SIZE) - 1);
    page = Math.min(Math.max(page, 0), last);
    body.replaceChildren(...found.slice(page * SIZE, (page + 1) * SIZE).map(row));
    $("status").textContent = `${found.length} of ${samples.length} samples`;
    $("page").textContent = `Page ${page + 1} of ${last + 1}`;
    $("previous").disabled = page === 0;
    $("next").disabled = page === last;
  }

  function filter() {
    const [search, run, code, slice, fault, order] = controls.map((control) => control.value);
    const needle = search.toLowerCase();
    found = samples.filter(
      (s) =>
        (run === "" || s.run === Number(run)) &&
        (code === "" || s.asked[1] === code || s.asked[2] === code) &&
        (slice === "" || s.crossed === (slice === "crossed")) &&
        (fault === "" || (fault === "-" ? !s.faults.length : s.faults.includes(fault))) &&
        (needle === "" ||
          s.id.toLowerCase().includes(needle) ||
          s.text.toLowerCase().includes(needle) ||
          questions[s.q].toLowerCase().includes(needle)),
    );
    found.sort(ORDERS[order]);
    page = 0;
    show();
  }

  runs.forEach((name, i) => $("run").append(el("option", { value: i }, name)));
  for (const code of new Set(samples.flatMap((s) => s.asked.slice(1))))
    $("language").append(el("option", { value: code }, language(code)));
  for (const fault of new Set(samples.flatMap((s) => s.faults))) $("fault").append(el("option", { value: fault }, fault));
  for (const code of codes)
    $("legend").append(el("span", {}, el("span", { class: `seg ${tint(code)}`, "data-l": code }, language(code))));
  $("legend").append(el("span", {}, el("span", { class: "seg off" }, "not the language asked for")));

  let waiting;
  $("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 200);
  });
  for (const control of controls.slice(1)) control.addEventListener("change", filter);
  document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
  for (const [id, step] of [["previous", -1], ["next", 1]])
    $(id).addEventListener("click", () => {
      page += step;
      show();
      $("samples").scrollIntoView();
    });
  addEventListener("beforeprint", () => document.querySelectorAll("main > section > details").forEach((d) => (d.open = true)));
  filter();
})();
