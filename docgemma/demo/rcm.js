// The checklist and the page beside it: a quote opens its page, an option answers what was asked back.
element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (!button) return;
  const { do: what, number } = button.dataset;
  if (what === "enlarge") element.querySelector("#dg-rcm-large img").src = element.querySelector("figure > img").src;
  else if (what === "back") document.querySelector("#dg-rcm [aria-pressed=true]")?.focus();
  else {
    for (const other of element.querySelectorAll("[aria-pressed]")) other.setAttribute("aria-pressed", other === button);
    trigger(what, { number: Number(number) });
  }
});

// Where the page stands below the checklist, it comes into view when a quote was chosen.
if (element.closest("#dg-rcm-page")) watch("value", () => {
  if (document.activeElement?.closest("#dg-rcm") && element.getBoundingClientRect().top > innerHeight / 2)
    element.scrollIntoView({ block: "start" });
});
