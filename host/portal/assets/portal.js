// Comfort for the portal's pages, all of which work without it.

// Times in the reader's own zone, the exact one on hover.
for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) continue;
  time.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  time.title = at.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" }) + " (" + at.toISOString() + ")";
}

// What is to be copied stands in the element that the button names.
async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
for (const button of document.querySelectorAll("button[data-copies]")) {
  const source = document.getElementById(button.dataset.copies);
  if (!source) continue;
  button.hidden = false;
  const said = button.parentElement.querySelector("[data-said]");
  button.addEventListener("click", async () => {
    try {
      await copy(source.textContent);
      if (said) said.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      if (said) said.textContent = "Press Ctrl+C";
    }
  });
}

// A form is sent once, however often its button is pressed; again after the page was come back to.
function free(form) {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled");
}
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = "yes";
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
    setTimeout(() => free(form), 10000);
  });
}
addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach(free));

// A date that never comes is not asked for.
for (const never of document.querySelectorAll("input[data-never]")) {
  const date = document.getElementById(never.dataset.never);
  const follow = () => (date.disabled = never.checked);
  never.addEventListener("change", follow);
  follow();
}

// A long list of checkboxes is narrowed while one types.
for (const filter of document.querySelectorAll("input[data-narrows]")) {
  const list = document.getElementById(filter.dataset.narrows);
  const narrow = () => {
    const wanted = filter.value.trim().toLowerCase();
    for (const label of list.querySelectorAll("label")) {
      const chosen = label.querySelector("input").checked;
      label.hidden = !chosen && !label.textContent.toLowerCase().includes(wanted);
    }
  };
  filter.addEventListener("input", narrow);
  filter.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
}

// Of a new repository only what its kind has is asked for.
const kind = document.querySelector("select[data-kinds]");
if (kind) {
  const follow = () => {
    for (const part of document.querySelectorAll("[data-of-kind]")) part.hidden = part.dataset.ofKind !== kind.value;
  };
  kind.addEventListener("change", follow);
  follow();
}
