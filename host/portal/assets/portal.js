// Conveniences for the portal's pages. All pages work without this script.

// Shows times in the reader's time zone, with the exact time on hover.
for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) continue;
  time.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  time.title = at.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" }) + " (" + at.toISOString() + ")";
}

// Copies the text of the element that the button names.
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
  const status = button.parentElement.querySelector("[data-said]");
  button.addEventListener("click", async () => {
    try {
      await copy(source.textContent);
      if (status) status.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      if (status) status.textContent = "Press Ctrl+C";
    }
  });
}

// Submits a form only once, even if its button is pressed again. Returning to the page resets this.
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

// Disables the date field while "Never" is checked.
for (const never of document.querySelectorAll("input[data-never]")) {
  const date = document.getElementById(never.dataset.never);
  const follow = () => (date.disabled = never.checked);
  never.addEventListener("change", follow);
  follow();
}

// Filters a long list of checkboxes while the member types.
for (const filter of document.querySelectorAll("input[data-narrows]")) {
  const list = document.getElementById(filter.dataset.narrows);
  const narrow = () => {
    const text = filter.value.trim().toLowerCase();
    for (const label of list.querySelectorAll("label")) {
      const chosen = label.querySelector("input").checked;
      label.hidden = !chosen && !label.textContent.toLowerCase().includes(text);
    }
  };
  filter.addEventListener("input", narrow);
  filter.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
}

// Shows only the fields of the chosen kind of a new repository.
const kind = document.querySelector("select[data-kinds]");
if (kind) {
  const follow = () => {
    for (const part of document.querySelectorAll("[data-of-kind]")) part.hidden = part.dataset.ofKind !== kind.value;
  };
  kind.addEventListener("change", follow);
  follow();
}

// Moves to the page's search field when "/" is pressed outside of a field.
const search = document.querySelector("input[type=search]");
if (search) {
  search.setAttribute("aria-keyshortcuts", "/");
  if (search.placeholder) search.placeholder += " (press /)";
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    search.focus();
  });
}

// Remembers the client whose commands the reader chose last, for each format.
for (const client of document.querySelectorAll("input[data-client]")) {
  try {
    if (localStorage.getItem(client.name) === client.dataset.client) client.checked = true;
    client.addEventListener("change", () => localStorage.setItem(client.name, client.dataset.client));
  } catch {
    // The browser allows no storage.
  }
}
