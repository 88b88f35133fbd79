// The list of conversations: open, rename in place (Enter keeps, Escape leaves it), delete after a second press.
const tell = (item, what) => trigger("select", { number: Number(item.dataset.number), name: "", ...what });
element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (!button) return;
  const item = button.closest("li");
  if (button.dataset.do === "rename") return rename(item);
  if (button.dataset.do === "delete" && !button.dataset.sure) {
    button.dataset.sure = "yes";
    button.textContent = "Delete?";
    button.setAttribute("aria-label", "Delete for good: " + item.querySelector(".dg-name").textContent);
    button.addEventListener("blur", () => {
      delete button.dataset.sure;
      button.textContent = "✕";
    }, { once: true });
    return;
  }
  tell(item, { do: button.dataset.do });
});

// The list is drawn anew after every change: what had the focus gets it again, or else the conversation in its place.
let last = null;
element.addEventListener("focusin", (event) => {
  const item = event.target.closest("li");
  last = item && { number: Number(item.dataset.number), what: event.target.dataset.do || "rename" };
});
element.addEventListener("focusout", (event) => { if (event.relatedTarget) last = null; });
watch("value", () => {
  if (!last || document.activeElement !== document.body) return;
  const items = element.querySelectorAll("li");
  const item = items[Math.min(last.number, items.length - 1)];
  (item?.querySelector(`[data-do=${last.what}]`) || document.querySelector("#dg-composer textarea"))?.focus();
});

function rename(item) {
  const button = item.querySelector(".dg-open-it");
  const field = document.createElement("input");
  field.value = item.querySelector(".dg-name").textContent;
  field.maxLength = 80;
  field.setAttribute("aria-label", "New name");
  let over = false; // taking the field away is a blur, too
  const done = (keep) => {
    if (over) return;
    over = true;
    const name = field.value.trim();
    field.replaceWith(button);
    if (keep && name) {
      item.querySelector(".dg-name").textContent = name;
      tell(item, { do: "rename", name });
    }
    item.querySelector("[data-do=rename]").focus();
  };
  field.addEventListener("keydown", (event) => {
    if (["Enter", "Escape"].includes(event.key)) event.preventDefault(); // else it would press the button that gets the focus
    if (event.key === "Enter") done(true);
    if (event.key === "Escape") done(false);
  });
  field.addEventListener("blur", () => done(true));
  button.replaceWith(field);
  field.select();
}
